"""States of a job and the legal moves between them, in one dependency-free file.

Where a row is, is its state: pending and retryable rows stand in `ready`, `scheduled` or `parked`,
running ones in `running`, the rest have a final row in `attempt`. Drawn in docs/state_machine.md;
a test keeps drawing, code and the database's CHECK constraints equal.
"""

from __future__ import annotations

PENDING = "pending"
RUNNING = "running"
RETRYABLE = "retryable"
COMPLETED = "completed"
DISCARDED = "discarded"
CANCELLED = "cancelled"

STATES = (PENDING, RUNNING, RETRYABLE, COMPLETED, DISCARDED, CANCELLED)
FINAL = frozenset({COMPLETED, DISCARDED, CANCELLED})

MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        (PENDING, RUNNING),  # claimed
        (RETRYABLE, RUNNING),  # claimed again
        (PENDING, CANCELLED),
        (RETRYABLE, CANCELLED),
        (RUNNING, COMPLETED),
        (RUNNING, RETRYABLE),  # failed, timed out, crashed, owner dead: an attempt is spent
        (RUNNING, PENDING),  # snoozed, given back, interrupted by a drain: none is spent
        (RUNNING, DISCARDED),  # permanent failure, or attempts exhausted
        (RUNNING, CANCELLED),
        (PENDING, DISCARDED),  # a kind that nobody knows, past its horizon
        (RETRYABLE, DISCARDED),
        (DISCARDED, RETRYABLE),  # retried by hand
        (CANCELLED, RETRYABLE),
        (DISCARDED, PENDING),  # likewise, but no try had been spent
        (CANCELLED, PENDING),
    }
)


def waiting_state(attempt: int) -> str:
    """Name the state of a waiting job: retryable once a try was spent, else pending."""
    return RETRYABLE if attempt > 0 else PENDING
