"""ADAPTER: replays: what one would deliver, beginning it, doing it in batches, ending it.

Behind shared.postgres.events.log, which people call, and behind the handler of `weirkeeper.replay`,
which does it. The SQL functions (migration `events`) are the one implementation: a batch is a
transaction, so that a replay goes on where it was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from shared.errors import InvalidArguments, NotFound
from shared.events.log import Replay, Span
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.looks import iso
from shared.postgres.driver.statements import statement

BATCH = 200  # events of one transaction, as of a relay pass


def plan(conn: Connection, span: Span) -> int:
    """How many events a replay would deliver; see shared.events.log.EventLog.plan."""
    with translated():
        row: Any = conn.execute(statement("replays/plan"), _parameters(span)).fetchone()
    if row[0] is None:
        raise NotFound(
            f"subscriber: expected a subscription of what runs here; got {span.subscription[:80]!r}"
        )
    return int(row[0])


def start(conn: Connection, span: Span, planned: int, asked_by: str) -> Replay:
    """Begin; see shared.events.log.EventLog.replay."""
    plan(conn, span)  # refuses a subscription that is none
    params = {**_parameters(span), "planned": planned, "asked_by": asked_by}
    with translated():
        row: Any = conn.execute(statement("replays/start"), params).fetchone()
    return status(conn, str(row[0]))


def listed(conn: Connection, limit: int) -> list[Replay]:
    """The last replays, newest first."""
    return _rows(conn, None, limit)


def status(conn: Connection, replay_id: str) -> Replay:
    """One replay; see shared.events.log.EventLog.replay_status."""
    found = _rows(conn, _number(replay_id), 1)
    if not found:
        raise _unknown(replay_id)
    return found[0]


def cancel(conn: Connection, replay_id: str) -> Replay:
    """End one; see shared.events.log.EventLog.cancel_replay."""
    with translated():
        conn.execute(statement("replays/cancel"), {"id": _number(replay_id)})
    return status(conn, replay_id)


def deliver(
    conn: Connection, replay_id: str, enough: Callable[[], bool], told: Callable[[int], None]
) -> bool:
    """Deliver what is left, batch by batch; whether nothing is left.

    Args:
        conn: in autocommit mode: each batch is a transaction.
        replay_id: of one that was started; one that is gone has nothing left.
        enough: asked between batches: stop here.
        told: called after each with how many are left.
    """
    params = {"id": _number(replay_id), "size": BATCH}
    while not enough():
        with translated():
            row: Any = conn.execute(statement("replays/batch"), params).fetchone()
        told(row[0])
        if row[0] == 0:
            return True
    return False


def _rows(conn: Connection, number: int | None, limit: int) -> list[Replay]:
    with translated():
        rows: Sequence[Any] = conn.execute(
            statement("replays/list"), {"id": number, "limit": limit}
        ).fetchall()
    return [_replay(row) for row in rows]


def _replay(row: Any) -> Replay:
    replay_id, subscription, types, since, until, events, done, jobs, *rest = row
    state, job_id, created_at = rest
    return Replay(
        id=replay_id,
        subscription=subscription,
        types=tuple(types),
        since=iso(since) or "",
        until=iso(until) or "",
        events=events,
        done=done,
        jobs=jobs,
        state=state,
        job_id=job_id,
        created_at=iso(created_at) or "",
    )


def _parameters(span: Span) -> dict[str, Any]:
    since, until = _moment("since", span.since), _moment("until", span.until)
    if since >= until:
        raise InvalidArguments(f"until: expected a moment after since; got {span.until}")
    return {
        "subscription": span.subscription,
        "types": list(span.types),
        "since": since,
        "until": until,
    }


def _moment(what: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not 1 < moment.year < 9999:
        raise InvalidArguments(
            f"{what}: expected a moment with a time zone, as 2026-01-31T12:00:00Z; "
            f"got {text[:40]!r}"
        )
    return moment


def _number(replay_id: str) -> int:
    if not (len(replay_id) <= 18 and replay_id.isascii() and replay_id.isdigit()):
        raise _unknown(replay_id)
    return int(replay_id)


def _unknown(replay_id: str) -> NotFound:
    return NotFound(f"replay: expected the id of one that is kept; got {replay_id[:40]!r}")
