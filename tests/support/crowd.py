"""Crowded tables: a number of jobs and events in every place, made by the server itself.

Of ten jobs three wait, one is parked, two are scheduled, three are completed and one is discarded;
beside them some run. Every third one is unique; of those that wait a third has one of 50 owners.
"""

from __future__ import annotations

from shared.postgres.driver.connect import Connection

RUNNING = 200
OWNER = 1  # epoch of those that run; their tokens are their ids
BIG = frozenset(
    (
        "job",
        "ready",
        "scheduled",
        "parked",
        "key",
        "attempt",
        "unique_key",
        "expiry",
        "event",
        "event_pending",
        "event_fanout",
        "event_failure",
        "rate_start",
    )
)
_FILL = (
    (
        "insert into weirkeeper.job (id, kind, queue, args, max_attempts, timeout_ms, awaited,"
        " created_at, expires_at, unique_key) overriding system value"
        " select i, 't.ok', 't', jsonb_build_object('n', i), 3, 1000, false,"
        "  now() - interval '30 days',"
        "  case when i %% 100 = 0 then now() + interval '1 day' end,"
        "  case when i %% 3 = 0 then sha256(i::text::bytea) end"
        " from generate_series(1, %(n)s::bigint) i"
    ),
    (
        "insert into weirkeeper.unique_key (hash, job_id)"
        " select unique_key, id from weirkeeper.job where unique_key is not null and id %% 10 <> 9"
    ),
    (
        "insert into weirkeeper.expiry (queue, expires_at, job_id)"
        " select queue, expires_at, id from weirkeeper.job where expires_at is not null"
    ),
    (
        "insert into weirkeeper.ready (queue, kind, priority, job_id, owner_id)"
        " select 't', 't.ok', 2, i, case when i %% 10 = 1 then 'o' || i / 10 %% 50 end"
        " from generate_series(1, %(n)s::bigint) i where i %% 10 < 3"
    ),
    (
        "insert into weirkeeper.key (name)"
        " select 'k' || i from generate_series(0, %(n)s::bigint / 100) i"
    ),
    (
        "insert into weirkeeper.parked (job_id, key, queue, kind, priority, attempt, run)"
        " select i, 'k' || i / 100, 't', 't.ok', 2, 0, 0"
        " from generate_series(1, %(n)s::bigint) i where i %% 10 = 3"
    ),
    # Half of them are due.
    (
        "insert into weirkeeper.scheduled (job_id, run_at, queue, kind, priority, attempt, run, why)"
        " select i, now() + make_interval(secs => i - %(n)s::bigint / 2), 't', 't.ok', 2, 1, 1, 'retry'"
        " from generate_series(1, %(n)s::bigint) i where i %% 10 in (4, 5)"
    ),
    (
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, finished_at)"
        " select i, 1, 1, case when i %% 10 = 9 then 'discarded' else 'completed' end,"
        "  case when i %% 10 = 9 then 'discarded' else 'completed' end,"
        "  now() - interval '20 days' * (i %% 2)"
        " from generate_series(1, %(n)s::bigint) i where i %% 10 > 5"
    ),
    (
        "with jobs as (insert into weirkeeper.job (id, kind, queue, max_attempts, timeout_ms, awaited)"
        " overriding system value select %(n)s::bigint + i, 't.ok', 't', 3, 1000, false"
        "  from generate_series(1, %(running)s) i returning id)"
        " insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token)"
        " select id, 1, 0, 't', 't.ok', 2, %(owner)s, id from jobs"
    ),
    (
        "with made as (insert into weirkeeper.event (id, seq, type, subject)"
        "  select gen_random_uuid(), -i, 't.happened', i::text"
        "  from generate_series(1, %(n)s::bigint / 5) i returning id, seq),"
        " waits as (insert into weirkeeper.event_pending (event_id)"
        "  select id from made where seq %% 2 = 0)"
        " insert into weirkeeper.event_fanout (event_id, jobs, fanned_out_at)"
        " select id, '{\"t.event\": 1}', now() - interval '8 days' from made where seq %% 2 <> 0"
    ),
    (
        "insert into weirkeeper.event_failure (event_id, failures, next_try_at)"
        " select gen_random_uuid(), 1, now() + make_interval(secs => i - %(n)s::bigint / 40)"
        " from generate_series(1, %(n)s::bigint / 20) i"
    ),
    # With their totals, which a trigger would count one by one.
    "set local session_replication_role = replica",
    (
        "insert into weirkeeper.rate_start (kind, n, at, total)"
        " select 't.ok', 1, now() - make_interval(secs => 60.0 * (1 - i / %(n)s::float8)), i"
        " from generate_series(1, %(n)s::bigint / 5) i"
    ),
    "set local session_replication_role = origin",
    "select setval('weirkeeper.job_id_seq', %(n)s::bigint + %(running)s)",
)


def keep_statistics(conn: Connection) -> None:
    """Nobody counts the tables anew: plans stay as they were made."""
    for table in (*BIG, "running"):
        conn.execute(f"alter table weirkeeper.{table} set (autovacuum_enabled = off)")


def crowd(conn: Connection, number: int) -> None:
    """So many jobs, and what belongs to them.

    Args:
        conn: on a database whose application is tests.support.app.
        number: of jobs; the first one has the id 1.
    """
    with conn.transaction():
        conn.execute("set local synchronous_commit = off")
        for text in _FILL:
            conn.execute(
                text, {"n": number, "running": RUNNING, "owner": OWNER} if "%" in text else None
            )
