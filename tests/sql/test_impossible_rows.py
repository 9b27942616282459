"""Rows that no job can have are refused by the database, whoever writes them."""

from __future__ import annotations

import psycopg
import pytest

LOG = "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state) values "
HELD = (
    "insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token)"
    " values "
)
LINE = "insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run) values "
LATER = (
    "insert into weirkeeper.scheduled (job_id, run_at, queue, kind, priority, attempt, run, why)"
    " values "
)
LOT = (
    "insert into weirkeeper.parked (job_id, key, queue, kind, priority, attempt, run)"
    " values (1, 'k', 'index', 'corpus.index', 2, "
)
JOB = "insert into weirkeeper.job (kind, args, {}) values ('corpus.index', '{{}}', {})"
KIND = (
    "insert into weirkeeper.kind (name, queue, max_attempts, timeout_ms, awaited, max_per_key)"
    " values "
)
PERIODIC = (
    "insert into weirkeeper.periodic (name, kind, every, cron, timezone, missed, timeout_ms)"
    " values ('p', 'corpus.index', "
)
PROCESS = (
    "insert into weirkeeper.process (role, slot, host, boot_id, pid_namespace, pid, pid_started,"
    " version, phase, connections) values "
)
IMPOSSIBLE = {
    "it completed and was discarded": LOG + "(1, 1, 1, 'completed', 'discarded')",
    "it failed and is completed": LOG + "(1, 1, 1, 'failed', 'completed')",
    "it was discarded and is completed": LOG + "(1, 1, 1, 'discarded', 'completed')",
    "a snooze ends a job": LOG + "(1, 1, 0, 'snoozed', 'discarded')",
    "a snooze cancels a job": LOG + "(1, 1, 0, 'snoozed', 'cancelled')",
    "an attempt ends in running": LOG + "(1, 1, 1, 'failed', 'running')",
    "an outcome that is none": LOG + "(1, 1, 1, 'lost', 'retryable')",
    "less than no try spent": LOG + "(1, 1, -1, 'failed', 'retryable')",
    "it runs and was never claimed": HELD + "(1, 0, 0, 'index', 'corpus.index', 2, 1, 1)",
    "it runs, less than no try spent": HELD + "(1, 1, -1, 'index', 'corpus.index', 2, 1, 1)",
    "in line, less than no try spent": LINE + "('index', 'corpus.index', 2, 1, -1, 0)",
    "in line, claimed less than never": LINE + "('index', 'corpus.index', 2, 1, 0, -1)",
    "it waits for ever": LATER + "(1, 'infinity', 'index', 'corpus.index', 2, 0, 0, 'delay')",
    "it waits for a whim": LATER + "(1, now(), 'index', 'corpus.index', 2, 0, 0, 'whim')",
    "later, less than no try": LATER + "(1, now(), 'index', 'corpus.index', 2, -1, 0, 'delay')",
    "parked, less than no try spent": LOT + "-1, 0)",
    "parked, claimed less than never": LOT + "0, -1)",
    "a fifth priority": JOB.format("priority", 5),
    "no try at all": JOB.format("max_attempts", 0),
    "no time at all": JOB.format("timeout_ms", 0),
    "a name with capitals": KIND + "('Mail', 'index', 1, 1, false, 1)",
    "a kind without tries": KIND + "('mail', 'index', 0, 1, false, 1)",
    "a key of which none may run": KIND + "('mail', 'index', 1, 1, false, 0)",
    "half a rate": "update weirkeeper.kind set rate_n = 1",
    "a cap under which none may run": "update weirkeeper.queue set cap = 0",
    "it ticks never": PERIODIC + "null, null, null, 'once', 1)",
    "it ticks in two ways": PERIODIC + "'1 s', '* * * * *', 'UTC', 'once', 1)",
    "it ticks all the while": PERIODIC + "'0 s', null, null, 'once', 1)",
    "cron in no zone": PERIODIC + "null, '* * * * *', null, 'once', 1)",
    "missed ticks are doubled": PERIODIC + "'1 s', null, null, 'twice', 1)",
    "a key without a name": "insert into weirkeeper.key (name) values ('')",
    "a process that does nothing": PROCESS + "('poet', 's', 'h', 'b', 1, 1, 1, 'v', 'ready', 1)",
    "a process asleep": PROCESS + "('relay', 's', 'h', 'b', 1, 1, 1, 'v', 'asleep', 1)",
    "a half stopped queue": "insert into weirkeeper.paused (what, name) values ('half', 'index')",
}


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as made:
        made.execute("insert into weirkeeper.key (name) values ('k')")
        yield made


def accepted(conn: psycopg.Connection) -> list[str]:
    """Those of the impossible rows that the database takes."""
    taken = []
    for what, row in IMPOSSIBLE.items():
        try:
            with conn.transaction(force_rollback=True):
                conn.execute(row)
            taken.append(what)
        except psycopg.errors.CheckViolation:
            pass
    return taken


def test_impossible_rows_are_refused(conn):
    assert accepted(conn) == []


def test_each_is_refused_by_its_constraint_alone(conn):
    """Without constraints all of them are taken: none was refused for a slip in the test."""
    rows = conn.execute(
        "select conrelid::regclass::text, conname from pg_constraint"
        " where contype = 'c' and connamespace = 'weirkeeper'::regnamespace"
    ).fetchall()
    for table, name in rows:
        conn.execute(f'alter table {table} drop constraint "{name}"')
    assert accepted(conn) == list(IMPOSSIBLE)
