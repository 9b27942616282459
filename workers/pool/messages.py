"""What parent and child say to each other: one JSON object a datagram, docs/child_protocol.md.

Stands between `slot` (the parent's end) and `child` (the other). A job's own line passes through
the parent as the bytes that the database gave; only the child parses it. `run` holds a list, so
that several short jobs can travel in one datagram; an outcome names its job by the index in it.
Must never unpickle anything.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

QUIT = b'{"type":"quit"}'
_EMPTY = msgspec.Raw(b"")


class Hello(msgspec.Struct, tag="hello", tag_field="type", omit_defaults=True):
    """A child's first word: it is ready, or `refused` says why it never will be."""

    refused: str = ""


class Outcome(msgspec.Struct, tag="outcome", tag_field="type", omit_defaults=True):
    """How one job ended in the child.

    Attributes:
        outcome: completed, failed, snoozed, discarded, or stopped (it was asked to).
        index: of the job in the message that brought it.
        result: JSON value of a completed job; empty = none.
        error: message for people.
        delay: seconds of a snooze, or in place of the kind's backoff.
        stack: Python traceback of a failure.
    """

    outcome: str
    index: int = 0
    result: msgspec.Raw = _EMPTY
    error: str | None = None
    delay: float | None = None
    stack: str | None = None


_decoder = msgspec.json.Decoder(Hello | Outcome)
_encoder = msgspec.json.Encoder()


def encode_run(lines: Sequence[bytes]) -> bytes:
    """The order to run jobs, each given as the JSON line that came from the database."""
    return b'{"type":"run","jobs":[' + b",".join(lines) + b"]}"


def decode_order(message: bytes | bytearray) -> list[dict[str, Any]] | None:
    """The jobs of an order to run; None = quit.

    The standard library's parser: numbers of any length stay exact, as they were enqueued.

    Raises:
        ValueError: not JSON, or a number beyond what Python reads.
    """
    order = json.loads(message)
    return order["jobs"] if order["type"] == "run" else None


def encode_reply(reply: Hello | Outcome) -> bytes:
    """What a child says, as it travels."""
    return _encoder.encode(reply)


def decode_reply(message: bytes | memoryview) -> Hello | Outcome:
    """What a child said.

    Raises:
        ValueError: it does not speak the protocol.
    """
    return _decoder.decode(message)
