"""What parent and child say to each other: one JSON object a datagram, docs/children.md.

Stands between `slot` (the parent's end) and `child` (the other). A job's own line passes through
the parent as the bytes that the database gave; only the child parses it. `run` holds a list: short
jobs travel together. An outcome names its job by the index in that list; a job that completed with
nothing to tell is told of by `done` alone, with all the others of its message.
Must never unpickle anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
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
        seconds: that it ran.
        used: CPU seconds of the run, and MiB of memory that the child has held at most; of runs
            that did not go well.
        outside: seconds of them in a request to a stranger, of kinds that make one.
    """

    outcome: str
    index: int = 0
    result: msgspec.Raw = _EMPTY
    error: str | None = None
    delay: float | None = None
    stack: str | None = None
    seconds: float = 0.0
    used: tuple[float, float] | None = None
    outside: float | None = None

    @property
    def plain(self) -> bool:
        """Whether there is nothing to tell but that the job completed."""
        return self.outcome == "completed" and (self.result is _EMPTY or not bytes(self.result))


class Done(msgspec.Struct, tag="done", tag_field="type", omit_defaults=True):
    """The end of a message's jobs: the first `ended` have, and no other of them will be begun.

    Left out when the last job has an outcome of its own.

    Attributes:
        ended: how many; all but those told of before completed.
        seconds: that passed since the last outcome, or since the first job began.
    """

    ended: int
    seconds: float = 0.0


class Order(msgspec.Struct, tag_field="type", tag="run"):
    """The order to run jobs; `first` is the number of the first in the child's life."""

    jobs: list[msgspec.Raw]
    first: int = 1


class Quit(msgspec.Struct, tag_field="type", tag="quit"):
    """The order to leave."""


Reply = Hello | Outcome | Done

_replies = msgspec.json.Decoder(Reply)
_orders = msgspec.json.Decoder(Order | Quit)
_jobs = msgspec.json.Decoder(dict[str, Any])
_encoder = msgspec.json.Encoder()


def encode_run(first: int, lines: Iterable[bytes]) -> bytes:
    """The order to run jobs, each given as the JSON line that came from the database."""
    return b'{"type":"run","first":%d,"jobs":[' % first + b",".join(lines) + b"]}"


def decode_order(message: bytes | memoryview) -> Order | Quit:
    """What a parent said.

    Raises:
        ValueError: it does not speak the protocol.
    """
    return _orders.decode(message)


def decode_job(line: msgspec.Raw) -> dict[str, Any]:
    """One job of an order. Whole numbers of any length stay exact, as they were enqueued.

    Raises:
        ValueError: a number beyond what Python reads.
    """
    try:
        job: dict[str, Any] = _jobs.decode(line)
    except msgspec.DecodeError:  # ten times as fast, but it has limits that JSON has not
        job = json.loads(bytes(line))
    return job


def encode_reply(reply: Reply) -> bytes:
    """What a child says, as it travels."""
    return _encoder.encode(reply)


def decode_reply(message: bytes | memoryview) -> Reply:
    """What a child said.

    Raises:
        ValueError: it does not speak the protocol.
    """
    return _replies.decode(message)
