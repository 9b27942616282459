"""The trace that goes with a job: from the event or the enqueue to its run, and on from there.

Set by shared.jobs.hooks for the length of a run; read by every adapter that enqueues or records.
Coroutines inherit it; a handler's own threads do not, and name it themselves.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

_TRACE: ContextVar[str | None] = ContextVar("weirkeeper_trace", default=None)


def carried(own: str | None) -> str | None:
    """The trace of something enqueued or recorded: its own, or else that of the job around it."""
    return _TRACE.get() if own is None else own


def carry(trace: str | None) -> Token[str | None]:
    """From now on, carry this trace."""
    return _TRACE.set(trace)


def put_down(token: Token[str | None]) -> None:
    """Carry again what was carried before `carry`."""
    _TRACE.reset(token)
