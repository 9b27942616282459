"""What a handler may answer: an outcome is a value; an exception is a failure.

Stands between the handler (which returns one) and the completer (which writes it). `None` means
`Completed()`. Any exception is a failed attempt, retried until the kind's attempts are spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MAX_RESULT_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class Completed:
    """Done. `result` is a JSON value of at most 32 KiB, returned to who waits for the job."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not now: run again after `seconds` (0 or more). No attempt is spent."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Discard:
    """Permanent failure: never try again, whatever attempts are left. `reason` is kept."""

    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """A failed attempt without an exception; `seconds` overrides the kind's backoff."""

    reason: str
    seconds: float | None = None


Outcome = Completed | Snooze | Discard | Retry
