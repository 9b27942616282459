"""ADAPTER: writing how runs ended, in fenced batches.

Before this: the completer's verdicts. After it: `attempt` rows, the job's next place, and the
final notice, all in one transaction. A row whose fence is lost (rescued, or finished by another)
is not written: it is late, dropped and counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from shared.jobs.work import Finish
from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement


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
