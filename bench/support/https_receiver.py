"""A receiver over TLS that does next to nothing: reads a request, answers 204, hangs up.

A process of its own: `python -m bench.support.https_receiver CERT KEY`. Prints its port, serves
until its standard input ends, then prints how many requests came.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import sys

ANSWER = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
LENGTH = re.compile(rb"content-length: *([0-9]+)", re.IGNORECASE)


class Counting:
    """What came."""

    def __init__(self) -> None:
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            found = LENGTH.search(head)
            await reader.readexactly(int(found[1]) if found else 0)
            self.requests += 1
            writer.write(ANSWER)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # whoever is stopped in the middle of a call
        finally:
            writer.close()


async def _main(certificate: str, key: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    counting = Counting()
    server = await asyncio.start_server(counting.serve, "127.0.0.1", 0, ssl=context, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()
    print(counting.requests, flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:3]))
