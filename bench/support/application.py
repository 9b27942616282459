"""The application of the measurements: one queue of four children, kinds that do no work."""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.support.contestant import NAP, NAP_SECONDS, NOOP, STAMP
from weirkeeper import App, Kind, Queue

FOLDER, CALLS = "BENCH_FOLDER", "BENCH_CALLS"
QUEUE = "bench"
CHILDREN = 4
HEAD = 8  # bytes before the first moment: how many there are


class Calls:
    """Moments of one child, in memory that the measurement can read: 8 bytes a call."""

    def __init__(self, folder: Path, most: int) -> None:
        path = folder / f"calls-{os.getpid()}"
        with path.open("wb+") as file:
            file.truncate(HEAD + 8 * most)
            self._memory = mmap.mmap(file.fileno(), HEAD + 8 * most)
        self._count = 0

    def add(self, moment: int) -> None:
        """Keep one more."""
        self._count += 1
        struct.pack_into("q", self._memory, 8 * self._count, moment)
        struct.pack_into("q", self._memory, 0, self._count)


_calls: list[Calls] = []  # of this child, made at its first call


def noop(_ctx: Any, _args: Mapping[str, Any]) -> None:
    """Nothing but the moment, in memory."""
    moment = time.monotonic_ns()
    if not _calls:
        _calls.append(Calls(Path(os.environ[FOLDER]), int(os.environ[CALLS])))
    _calls[0].add(moment)


def nap(ctx: Any, args: Mapping[str, Any]) -> None:
    """The moment, in memory; then a millisecond of waiting for something."""
    noop(ctx, args)
    doze()


def doze() -> None:
    """The work of a nap."""
    time.sleep(NAP_SECONDS)


def stamp(_ctx: Any, _args: Mapping[str, Any]) -> None:
    """Nothing but the moment, in a file."""
    moment = time.monotonic_ns()
    file = os.open(Path(os.environ[FOLDER]) / STAMP, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, moment.to_bytes(8, "little"))
    os.close(file)


app = App(
    include_site=False,
    environment=(FOLDER, CALLS),
    queues=(Queue(QUEUE, children=CHILDREN),),
    kinds=(
        Kind(NOOP, QUEUE, "bench.support.application:noop"),
        Kind(STAMP, QUEUE, "bench.support.application:stamp"),
        Kind(NAP, QUEUE, "bench.support.application:nap"),
    ),
)
