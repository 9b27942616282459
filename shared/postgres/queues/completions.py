"""ADAPTER: writing how runs ended, in fenced batches.

Before this: the completer's verdicts. After it: `attempt` rows, the job's next place, and the
final notice, all in one transaction. A row whose fence is lost (rescued, or finished by another)
is not written: it is late, dropped and counted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from shared.jobs.work import Completed, Finish
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.prepared import as_array, as_texts, prepared
from shared.postgres.driver.statements import statement

Told = tuple[str, str | None]  # when it began, seconds since 1970 or "null"; its result
Ended = tuple[int, Sequence[str]]  # how many rows, and the concurrency keys that gave up a place


def complete(conn: Connection, epoch: int, runs: Sequence[Completed]) -> int:
    """Write plain successes in one transaction: the hot path.

    Returns:
        How many still held the fence; the rest were late.

    Raises:
        DatabaseUnavailable: as of `finish`.
    """
    started: dict[int, Told] = {}
    for run in runs:  # the same text for all that one child ran
        started.update(
            dict.fromkeys([claim.job_id for claim in run.claims], (str(run.started_at), None))
        )
    tokens = {claim.token for run in runs for claim in run.claims}
    with translated():
        return _complete(conn, epoch, started, tokens, alone=True)[0] if started else 0


def finish(conn: Connection, epoch: int, finishes: Sequence[Finish]) -> int:
    """Write a batch in one transaction, ids in order so that batches never deadlock.

    Returns:
        How many still held the fence; the rest were late.

    Raises:
        DatabaseUnavailable: nothing, or everything, was written: write the same batch again (what
            was written is fenced by then).
    """
    ordered = sorted(finishes, key=lambda f: f.job_id)
    if any(f.horizon is not None for f in ordered):
        with translated():
            ordered = _within_horizons(conn, ordered)
    started = {f.job_id: (str(f.started_at or "null"), f.result) for f in ordered if f.plain}
    tokens = {f.token for f in ordered if f.plain}
    rest = [f for f in ordered if not f.plain]
    with translated():
        if not rest:
            return _complete(conn, epoch, started, tokens, alone=True)[0] if started else 0
        if not started:
            return _settle(conn, epoch, rest, alone=True)[0]
        with conn.transaction():
            completed, keys = _complete(conn, epoch, started, tokens, alone=False)
            settled, more = _settle(conn, epoch, rest, alone=False)
            if keys or more:  # once in a transaction, so that nobody waits in a circle
                conn.execute(statement("completions/unpark"), {"keys": [*keys, *more]})
            return completed + settled


def _within_horizons(conn: Connection, finishes: Sequence[Finish]) -> list[Finish]:
    """Let those fail whose dependency has been away for longer than their kind allows."""
    asked = [f.job_id for f in finishes if f.horizon is not None]
    rows = conn.execute(statement("completions/outages"), {"job_ids": asked}).fetchall()
    away = {int(str(job_id)): float(str(seconds)) for job_id, seconds in rows}

    def judged(finish: Finish) -> Finish:
        horizon, seconds = finish.horizon, away.get(finish.job_id, 0.0)
        late = horizon is not None and seconds > horizon
        return finish.beyond if late and finish.beyond is not None else finish

    return [judged(finish) for finish in finishes]


def _complete(
    conn: Connection,
    epoch: int,
    started: Mapping[int, Told],
    tokens: Collection[int],
    *,
    alone: bool,
) -> Ended:
    """Arrays as texts: psycopg takes five times as long to make them of lists."""
    ids = sorted(started)
    began, results = zip(*map(started.__getitem__, ids), strict=True)
    row = prepared(conn, "completions/complete").rows(
        {
            "job_ids": as_array(ids),
            "tokens": as_array(tokens),
            "started": as_array(began),
            "results": as_texts(results) if any(results) else None,
            "epoch": str(epoch),
            "alone": str(alone),
        }
    )[0]
    return int(row[0]), row[1] or ()


def _settle(conn: Connection, epoch: int, finishes: Sequence[Finish], *, alone: bool) -> Ended:
    row: Any = conn.execute(
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
            "alone": alone,
        },
    ).fetchone()
    return int(row[0]), row[1] or ()
