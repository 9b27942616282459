"""ADAPTER: writing how runs ended, in fenced batches.

Before this: the completer's verdicts. After it: `attempt` rows, the job's next place, and the
final notice, all in one transaction. A row whose fence is lost (rescued, or finished by another)
is not written: it is late, dropped and counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement


@dataclass(frozen=True, slots=True)
class Finish:
    """How one run ended.

    Attributes:
        job_id, token: of the claim.
        outcome: completed, failed, timeout, crashed, snoozed, discarded, cancelled, interrupted.
        state: where the job goes: completed, discarded, cancelled, pending, retryable.
        delay: None = final; 0 = ready at once; else seconds until it may run again.
        spent: an attempt was spent.
        error: message for people; already clean (no NUL) and bounded.
        cause: one word of a closed list for programs.
        evidence: what is known of how it ended (signal, exit code, stack …).
        result: JSON text of at most 32 KiB.
        started_at: when the child began; None = it never did.
    """

    job_id: int
    token: int
    outcome: str = "completed"
    state: str = "completed"
    delay: float | None = None
    spent: bool = True
    error: str | None = None
    cause: str | None = None
    evidence: Mapping[str, Any] | None = None
    result: str | None = None
    started_at: datetime | None = None

    @property
    def plain(self) -> bool:
        """A success with nothing to say: the hot path."""
        return self.outcome == "completed" and self.result is None and self.evidence is None


def finish(conn: Connection, epoch: int, finishes: Sequence[Finish]) -> int:
    """Write a batch in one transaction, ids in order so that batches never deadlock.

    Returns:
        How many still held the fence; the rest were late.

    Raises:
        DatabaseUnavailable: nothing, or everything, was written: write the same batch again (what
            was written is fenced by then).
    """
    ordered = sorted(finishes, key=lambda f: f.job_id)
    plain = [f for f in ordered if f.plain]
    rest = [f for f in ordered if not f.plain]
    with translated():
        if not rest:
            return _complete(conn, epoch, plain) if plain else 0
        if not plain:
            return _settle(conn, epoch, rest)
        with conn.transaction():
            return _complete(conn, epoch, plain) + _settle(conn, epoch, rest)


def _complete(conn: Connection, epoch: int, finishes: Sequence[Finish]) -> int:
    row = conn.execute(
        statement("completions/complete"),
        {
            "job_ids": [f.job_id for f in finishes],
            "tokens": [f.token for f in finishes],
            "started": [f.started_at for f in finishes],
            "epoch": epoch,
        },
    ).fetchone()
    return int(str(row[0])) if row else 0


def _settle(conn: Connection, epoch: int, finishes: Sequence[Finish]) -> int:
    row = conn.execute(
        statement("completions/settle"),
        {
            "job_ids": [f.job_id for f in finishes],
            "tokens": [f.token for f in finishes],
            "outcomes": [f.outcome for f in finishes],
            "states": [f.state for f in finishes],
            "delays": [f.delay for f in finishes],
            "spent": [f.spent for f in finishes],
            "errors": [f.error for f in finishes],
            "causes": [f.cause for f in finishes],
            "evidence": [None if f.evidence is None else json.dumps(f.evidence) for f in finishes],
            "results": [f.result for f in finishes],
            "started": [f.started_at for f in finishes],
            "epoch": epoch,
        },
    ).fetchone()
    return int(str(row[0])) if row else 0
