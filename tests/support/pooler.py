"""A small pooler between a client and Postgres, as the well-known ones work: for tests.

Each client signs in through a server session of its own, which then goes to the pool. In transaction
mode a client is lent some session of the pool for as long as its transaction lasts (another one each
time, which is allowed and unkind); what a session says while nobody has it is thrown away. In session
mode a client keeps the session that it signed in with. Like the real ones it shows its clients a process
id of its own making.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from urllib.parse import urlsplit

READY, KEY, TERMINATE = b"Z", b"K", b"X"


class Pooler:
    """Runs in a thread until `close`.

    Args:
        url: of the database behind it.
        transaction: transaction mode; else session mode.

    Attributes:
        url: for clients.
    """

    def __init__(self, url: str, *, transaction: bool) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "", parts.port or 5432)
        self._transaction = transaction
        self._pool: list[Peer] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,))
        self._thread.start()
        started.wait(10)
        place = f"{parts.username}:{parts.password}@127.0.0.1:{self._port}"
        self.url = parts._replace(netloc=place).geturl()

    def close(self) -> None:
        """End it with all its connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        listening = self._loop.run_until_complete(
            asyncio.start_server(self._client, "127.0.0.1", 0)
        )
        self._port = listening.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        listening.close()
        self._loop.run_until_complete(self._end())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        ends = (writer.wait_closed() for writer in self._writers)
        await asyncio.gather(*ends, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, EOFError):
            return
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = await _hello(reader)
        if hello[4:8] == struct.pack("!i", 80877103):  # it asks for TLS
            writer.write(b"N")
            hello = await _hello(reader)
        client = Peer(reader, writer)
        server = Peer(*await asyncio.open_connection(*self._server))
        self._writers += (client.writer, server.writer)
        server.writer.write(hello)
        await _lend(client, server)  # until it is signed in
        if not self._transaction:
            while True:
                await _lend(client, server, keeps=True)
        self._pool.append(server)
        while True:
            message = await client.heard()
            if message[:1] == TERMINATE:  # the client ends, not a session of the pool
                return
            lent = self._pool.pop(0)  # not the one that it had last
            lent.forget()
            lent.writer.write(message)
            await _lend(client, lent)
            self._pool.append(lent)


class Peer:
    """One end of a connection; what it says waits in a queue, message by message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self._task = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                head = await reader.readexactly(5)
                (length,) = struct.unpack("!i", head[1:])
                self._said.put_nowait(head + await reader.readexactly(length - 4))
        except (asyncio.IncompleteReadError, ConnectionError):
            self._said.put_nowait(b"")

    async def heard(self) -> bytes:
        """The next message.

        Raises:
            EOFError: it went away.
        """
        message = await self._said.get()
        if not message:
            raise EOFError
        return message

    def forget(self) -> None:
        """Throw away what it said while nobody listened."""
        while not self._said.empty():
            self._said.get_nowait()


async def _hello(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack("!i", await reader.readexactly(4))
    return struct.pack("!i", length) + await reader.readexactly(length - 4)


async def _lend(client: Peer, server: Peer, *, keeps: bool = False) -> None:
    """Pass on what both say, until no transaction is open (or, where it keeps it, to the end)."""
    asking = asyncio.create_task(client.heard())
    answering = asyncio.create_task(server.heard())
    try:
        while True:
            await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                server.writer.write(asking.result())
                asking = asyncio.create_task(client.heard())
            if answering.done():
                message = answering.result()
                if message[:1] == KEY:  # not the server's
                    message = message[:5] + struct.pack("!i", 4_242_424) + message[9:]
                client.writer.write(message)
                if message[:1] == READY and message[5:6] == b"I" and not keeps:
                    return
                answering = asyncio.create_task(server.heard())
    finally:
        for task in (asking, answering):
            task.cancel()
        await asyncio.gather(asking, answering, return_exceptions=True)
