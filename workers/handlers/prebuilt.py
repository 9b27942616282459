"""What handlers build once from settings: in the fork server, for all children to share.

    @prebuilt
    def caller() -> GuardedClient: …

Before this: a handler's module is imported. After it: `workers.preload` builds what its queue's
modules named, so that a child's first job finds it made, in pages that all of them share. Anywhere
else it is built when it is first asked for. Must not hold what a fork cannot copy: no thread, no
socket, no connection.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

T = TypeVar("T")
_named: list[Callable[[], object]] = []


def prebuilt(make: Callable[[], T]) -> Callable[[], T]:
    """Make a function without parameters answer with what its first call built."""
    built = cache(make)
    _named.append(built)
    return built


def build() -> None:
    """Build all that the modules imported so far have named.

    Raises:
        Exception: whatever one of them raised.
    """
    for built in _named:
        built()
