"""Wait on a condition with a deadline: the way that a test waits.

`pause` is for the few places where time itself is what is tried; it has to say so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
PAUSE = 0.01  # seconds between looks


def until(predicate: Callable[[], T], timeout: float, what: str) -> T:
    """Look again and again until the predicate gives something true; return it.

    Args:
        predicate: cheap, without side effects.
        timeout: seconds after which the test fails.
        what: what is waited for, for the message: "the job is completed".

    Raises:
        AssertionError: the deadline passed; tells the last value seen.
    """
    deadline = time.monotonic() + timeout
    while True:
        seen = predicate()
        if seen:
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s for: {what}; last seen: {seen!r}")
        time.sleep(PAUSE)


def pause(seconds: float, why: str) -> None:
    """Let time pass, because its passing is what is tried; never to hope that something is done.

    Args:
        seconds: how long.
        why: what the time is for, for readers.
    """
    assert why
    time.sleep(seconds)


class Lateness:
    """How late this machine wakes who sleeps: what a slow machine adds to every deadline."""

    def __init__(self) -> None:
        self.worst = 0.0


@contextmanager
def lateness(clock: Callable[[], float]) -> Iterator[Lateness]:
    """Measure it beside something."""
    found, over, step = Lateness(), threading.Event(), 0.02

    def look() -> None:
        before = clock()
        while not over.wait(step):
            now = clock()
            found.worst = max(found.worst, now - before - step)
            before = now

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
