"""The hostile receivers that answer HTTP, by name: what each does, and what the client makes of it."""

from __future__ import annotations

import gzip
import zlib
from functools import reduce

from tests.support import receivers as r
from tests.support.receivers import Behaviour, Peer, answering

BOMB = zlib.compressobj(9, zlib.DEFLATED, 31)
BOMBS = {
    "gzip": BOMB.compress(bytes(50_000_000)) + BOMB.flush(),
    "deflate": zlib.compress(bytes(50_000_000), 9),
    "br": b"\x5b\xff\xff\xff" * 5_000,
    "zstd": b"\x28\xb5\x2f\xfd" * 5_000,
    "gzip, gzip, gzip, gzip, gzip": reduce(
        lambda packed, _: gzip.compress(packed), range(5), bytes(20_000_000)
    ),
}
ENDLESS = 10_000_000_000  # bytes that an answer says it has, and that it unpacks to


def bomb(encoding: str) -> Behaviour:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: "
    body = BOMBS[encoding]
    return answering(f"{head}{len(body)}\r\n\r\n".encode() + body)


def endless_bomb(encoding: str) -> Behaviour:
    """10 GB of zeros, packed while they are sent: what is written is the same piece again and again."""
    if encoding == "gzip":
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        megabyte = bytes(1_000_000)
        begin, piece = (packer.compress(megabyte) + packer.flush(zlib.Z_FULL_FLUSH) for _ in "ab")
        unpacked = 1_000_000
    elif encoding == "zstd":  # a frame's head; a block that says "128 KiB of this byte"
        begin, piece, unpacked = b"\x28\xb5\x2f\xfd\x00\x38", b"\x02\x00\x10\x00", 131_072
    else:
        begin, piece, unpacked = b"", BOMBS["br"][:4], 1_000_000
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {ENDLESS}\r\n\r\n"
    together = 65_536 // len(piece)

    def behave(peer: Peer) -> None:
        if peer.request():
            peer.send(head.encode() + begin)
            peer.flood(piece * together, ENDLESS // unpacked // together + 1)
            peer.rest()  # what it said it has never comes

    return behave


def answer(text: bytes) -> Behaviour:
    return answering(b"HTTP/1.1 " + text)


# (behaviour, the error, status, how the body may end)
HOSTILE = {
    "never answers": (r.never_answers, "response_timeout", None, ""),
    "trickled headers": (r.trickled_headers, "response_timeout", None, ""),
    "endless headers": (r.endless_headers, "response_too_large", None, ""),
    "one endless header": (r.one_endless_header, "response_too_large", None, ""),
    "endless 1xx": (r.endless_informational, "response_too_large", None, ""),
    "trickled 1xx": (r.trickled_informational, "response_timeout", None, ""),
    "trickled body": (r.trickled_body, "", 200, "timeout"),
    "trickled chunks": (r.trickled_chunks, "", 200, "timeout"),
    "silent body": (r.silent_body, "", 200, "timeout"),
    "250 MB body": (r.huge_body, "", 200, "too_large"),
    **{f"bomb of {name}": (bomb(name), "", 200, "whole too_large") for name in BOMBS},
    **{
        f"endless bomb of {name}": (endless_bomb(name), "", 200, "too_large timeout")
        for name in ("gzip", "br", "zstd")
    },
    "resets": (r.resets, "connection_reset", None, ""),
    "hangs up": (answering(), "connection_reset", None, ""),
    "hangs up in the head": (answer(b"200 OK\r\nX-A: "), "connection_reset", None, ""),
    "101": (
        answer(b"101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        "protocol_error",
        None,
        "",
    ),
    "two lengths": (
        answer(b"200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
        "protocol_error",
        None,
        "",
    ),
    "length and chunks": (
        answer(b"200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        "",
        200,
        "whole",
    ),
    "unknown framing": (
        answer(b"200 OK\r\nTransfer-Encoding: x\r\n\r\n"),
        "protocol_error",
        None,
        "",
    ),
    "NUL in a header": (answer(b"200 OK\r\nX-A: a\x00b\r\n\r\n"), "protocol_error", None, ""),
    "header without a name": (answer(b"200 OK\r\n: b\r\n\r\n"), "protocol_error", None, ""),
    "not ASCII in a header": (
        answer("200 OK\r\nX-A: é中\r\nContent-Length: 0\r\n\r\n".encode()),
        "",
        200,
        "whole",
    ),
    "short body": (answer(b"200 OK\r\nContent-Length: 9\r\n\r\nab"), "", 200, "cut"),
    "short chunk": (
        answer(b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab"),
        "",
        200,
        "cut",
    ),
    "bad chunk": (answer(b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"), "", 200, "cut"),
    "no HTTP at all": (answering(b"SSH-2.0-OpenSSH_9\r\n\r\n"), "protocol_error", None, ""),
    "HTTP/2": (answering(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "protocol_error", None, ""),
    "status of two digits": (answer(b"20 OK\r\n\r\n"), "protocol_error", None, ""),
}
