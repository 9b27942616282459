"""The open child protocol: what a foreign program says, one JSON object a line. Pure.

Stands between the bytes of a program's descriptor 3 and `programs`. Whoever wrote the program may
have made any mistake: nothing that it says is believed before it was checked here, and whatever
breaks the protocol becomes one sentence that says so. docs/child_protocol.md tells each message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

import msgspec

from shared.errors import InvalidArguments
from shared.jobs.answers import Answer, read_answer
from shared.jobs.failures import clean
from shared.jobs.outcomes import Completed, Discard, Retry, Snooze

PROTOCOL = 1
LONGEST = 256 * 1024  # bytes of a line; a result may have 32 KiB, an error and a stack 8 each
_SHOWN = 80  # characters of a bad line that are told


class ProtocolError(Exception):
    """What a program said is not what the protocol knows."""


class Hello(msgspec.Struct, tag="hello", tag_field="type"):
    """Its first line: it is ready, or `refused` says why it never will be.

    `stacks` is a signal on which it writes its stacks to its standard error.
    """

    protocol: int = PROTOCOL
    refused: str = ""
    stacks: int = 0


class Told(msgspec.Struct, tag="outcome", tag_field="type"):
    """How its job ended."""

    id: str
    outcome: Literal["completed", "failed", "snoozed", "discarded", "stopped", "away"]
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: str | None = None
    delay: float | None = None
    stack: str | None = None


class Progress(msgspec.Struct, tag="progress", tag_field="type"):
    """How far its job is."""

    id: str
    n: float
    of: float | None = None


class Log(msgspec.Struct, tag="log", tag_field="type"):
    """A line for the log."""

    text: str
    level: Literal["debug", "info", "warning", "error"] = "info"


Message = Hello | Told | Progress | Log
_decoder = msgspec.json.Decoder(Message)


class Lines:
    """Puts what was read together to lines.

    Args:
        longest: bytes that a line may have.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take what was read; give the lines that are whole.

        Raises:
            ProtocolError: a line is too long.
        """
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            line = bytes(self._rest)
            self._rest.clear()
            yield line
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._rest += part
        if len(self._rest) > self._longest:
            began = _shown(bytes(self._rest[:_SHOWN]))
            raise ProtocolError(f"a line of more than {self._longest} bytes: {began}")


def read(line: bytes) -> Message:
    """Read one line.

    Raises:
        ProtocolError: no JSON, or no message that is known.
    """
    try:
        message = _decoder.decode(line)
    except (ValueError, RecursionError) as error:  # of msgspec: both errors are ValueErrors
        raise ProtocolError(f"a line that is no message ({error}): {_shown(line)}") from error
    if isinstance(message, Hello) and message.protocol != PROTOCOL:
        raise ProtocolError(f"protocol {message.protocol}; expected {PROTOCOL}")
    if isinstance(message, Progress) and min(message.n, message.of or 0.0) < 0:
        raise ProtocolError(f"progress {message.n} of {message.of}; expected 0 or more")
    return message


def answer(told: Told, kind: str) -> Answer:
    """What an outcome means, with the limits that our own handlers have.

    Args:
        told: anything but "stopped" and "away".
        kind: of the job, for messages.

    Raises:
        ProtocolError: a result that cannot be stored, a delay that is none or missing.
    """
    error = told.error or ""
    try:
        if told.outcome == "completed":
            return read_answer(Completed(json.loads(bytes(told.result))), kind)
        if told.outcome == "discarded":
            return read_answer(Discard(error or "discarded without a word why"), kind)
        if told.outcome == "failed":
            return read_answer(Retry(error or "failed without a word why", told.delay), kind)
        return read_answer(Snooze(-1.0 if told.delay is None else told.delay), kind)
    except (InvalidArguments, ValueError, RecursionError) as problem:
        raise ProtocolError(f"an outcome that cannot be taken: {problem}") from problem


def say(message: Message) -> bytes:
    """A message as a program of ours writes it: one line."""
    return msgspec.json.encode(message) + b"\n"


def order_run(job: bytes) -> bytes:
    """The order to run a job, given as the JSON line that came from the database."""
    return b'{"type":"run","job":' + job + b"}\n"


def order_stop(job_id: str, reason: str) -> bytes:
    """The request to stop the job that runs."""
    return json.dumps({"type": "stop", "id": job_id, "reason": reason}).encode() + b"\n"


def _shown(line: bytes) -> str:
    return clean(repr(line[:_SHOWN].decode("utf-8", "replace")))
