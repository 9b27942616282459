"""A kind that is declared in another queue while jobs of it wait: they go after it, once each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from shared.app import App
from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.inspection.verify import repair, violations
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.completions import Finish, finish
from shared.postgres.queues.keys import key_open
from shared.postgres.queues.lines import Lines
from shared.postgres.queues.moved import bring
from shared.postgres.queues.promotions import promote, promote_unattended
from shared.postgres.queues.rescues import rescue
from tests.support.waiting import until
from weirkeeper import JobFilter, Kind, Queue

KIND = "mv.k"


def app(queue: str) -> App:
    """A release in which the kind lies in `queue`."""
    return App(
        include_site=False,
        queues=(Queue("old", children=1), Queue("new", children=1)),
        kinds=(Kind(KIND, queue, "tests.support.app:ok"), Kind("mv.other", "old", "tests.support.app:ok")),
    ).check()  # fmt: skip


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        declare(opened, app("old"))
        yield opened


def add(conn: Connection, **opts: object) -> int:
    return int(PostgresJobs(conn).enqueue(KIND, {}, EnqueueOpts(**opts)))  # type: ignore[arg-type]


def process(
    conn: Connection, queue: str, kinds: tuple[str, ...] = (KIND,), **fields: object
) -> int:
    """A living queue process; its epoch."""
    row = {"phase": "ready", "rest_asked_at": None, **fields}
    found = conn.execute(
        "insert into weirkeeper.process (role, slot, queue, host, boot_id, pid_namespace, pid,"
        " pid_started, version, phase, connections, children, kinds, rest_asked_at)"
        " values ('queue', %s, %s, 'h', 'b', 1, 1, 1, 'v', %s, 1, 1, %s, %s) returning epoch",
        (queue, queue, row["phase"], list(kinds), row["rest_asked_at"]),
    ).fetchone()
    assert found is not None
    return int(found[0])


def move(conn: Connection) -> int:
    """The release in which the kind lies in `new` has come: its process' epoch."""
    declare(conn, app("new"))
    return process(conn, "new")


def bring_all(conn: Connection, epoch: int) -> int:
    return bring(conn, "new", epoch, [KIND])


def line(conn: Connection) -> list[tuple[str, int]]:
    """(queue, job) of what is in line, in order of the numbers."""
    return conn.execute("select queue, job_id from weirkeeper.ready order by seq").fetchall()


def claimed(conn: Connection, queue: str = "new", epoch: int = 1) -> list[int]:
    return [c.job_id for c in Claims(conn, queue, epoch).claim([KIND], 100)]


def test_jobs_in_line_come_in_their_order_behind_what_stands_there(conn):
    first, last = add(conn), add(conn)
    urgent = add(conn, priority=1)
    other = int(PostgresJobs(conn).enqueue("mv.other", {}))
    epoch = move(conn)
    here = add(conn)
    assert claimed(conn) == [here]
    assert bring_all(conn, epoch) == 3
    assert line(conn) == [("old", other), ("new", urgent), ("new", first), ("new", last)]
    assert claimed(conn) == [urgent, first, last]
    assert bring_all(conn, epoch) == 0


def test_the_look_at_the_limits_tells_when_there_is_something_to_bring(conn):
    """So that a process at rest has no statement more; and it says nothing of what is as it should be."""
    job = add(conn)
    soon = add(conn, run_at=datetime.now(UTC) + timedelta(hours=1))
    old = process(conn, "old")
    lines = Lines(conn, "old", old)
    assert not lines.learn()
    epoch = move(conn)
    assert lines.learn(), "a kind of its own is declared elsewhere"
    lines = Lines(conn, "new", epoch)
    assert lines.learn(), "a job lies in another line"
    assert bring_all(conn, epoch) == 1
    assert not lines.learn()
    conn.execute("update weirkeeper.scheduled set run_at = now() - interval '6 s'")
    assert lines.learn(), "something is overdue in another queue"
    assert promote(conn, "old")[0] == 1
    assert not lines.learn()
    assert [found for _, found in line(conn)] == [job, soon]


def test_they_come_in_batches_none_twice_none_left(conn):
    jobs = [add(conn) for _ in range(5)]
    epoch = move(conn)
    assert [bring(conn, "new", epoch, [KIND], 2) for _ in range(4)] == [2, 2, 1, 0]
    assert claimed(conn) == jobs


def test_two_that_bring_share_them(conn, database_url):
    jobs = [add(conn) for _ in range(4)]
    epoch, other = move(conn), process(conn, "new")
    with connect(database_url, "other", Use.HOT) as second, second.transaction():
        assert bring(second, "new", other, [KIND], 2) == 2
        assert bring_all(conn, epoch) == 2
    assert sorted(claimed(conn)) == jobs


def test_who_ends_a_job_while_it_is_brought_finds_its_row(conn, database_url):
    """The move is no gap between two rows: a delete by the job's number waits for it, and finds it."""
    job = add(conn)
    epoch = move(conn)
    ended: list[int] = []

    def end() -> None:
        with connect(database_url, "other") as other:
            gone = other.execute("delete from weirkeeper.ready where job_id = %s", (job,))
            ended.append(gone.rowcount)

    with conn.transaction(), connect(database_url, "look") as look:
        bring_all(conn, epoch)
        thread = threading.Thread(target=end)
        thread.start()
        waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
        until(lambda: look.execute(waits).fetchone(), 10, "the delete waits for the move")
    thread.join(10)
    assert (ended, line(conn)) == ([1], [])


def test_what_was_for_later_stands_in_the_new_line_when_its_time_has_come(conn):
    job = add(conn, run_at=datetime.now(UTC) + timedelta(hours=1))
    move(conn)
    process(conn, "old", ("mv.other",))
    conn.execute("update weirkeeper.scheduled set run_at = now() - interval '1 s'")
    assert promote_unattended(conn) == 0  # its old queue has a process
    assert promote(conn, "old")[0] == 1
    assert line(conn) == [("new", job)]


def test_a_queue_that_is_served_no_more_is_seen_to_by_the_others(conn):
    soon = datetime.now(UTC) + timedelta(hours=1)
    later = [add(conn, run_at=soon) for _ in range(3)]
    gone = process(conn, "old")
    move(conn)
    conn.execute("update weirkeeper.scheduled set run_at = now() - interval '1 s'")
    assert promote_unattended(conn) == 0
    conn.execute(
        "update weirkeeper.process set beat_at = now() - interval '16 s' where epoch = %s", (gone,)
    )
    assert [promote_unattended(conn, 2) for _ in range(3)] == [2, 1, 0]
    assert sorted(line(conn)) == [("new", job) for job in later]


def test_what_was_to_start_by_a_moment_ends_at_it_also_there(conn):
    lost = add(conn, expires_at=datetime.now(UTC) + timedelta(hours=1))
    conn.execute("update weirkeeper.job set expires_at = now()")
    conn.execute("update weirkeeper.expiry set expires_at = now()")
    promote_unattended(conn)
    assert PostgresInspector(conn).get(str(lost)).attempts[-1].cause == "expired"
    assert conn.execute("select count(*) from weirkeeper.expiry").fetchone() == (0,)


def test_a_parked_job_is_called_into_the_new_line(conn):
    with conn.transaction():
        key_open(conn, "k", "infinity")
    job = add(conn, concurrency_key="k")
    assert claimed(conn, "old") == []  # parked
    move(conn)
    key_open(conn, "k")
    assert line(conn) == [("new", job)]
    assert claimed(conn) == [job]


@pytest.mark.parametrize("later", [False, True])
def test_a_retry_by_hand_goes_into_the_new_line(conn, later):
    opts = {"run_at": datetime.now(UTC) + timedelta(hours=1)} if later else {}
    job = add(conn, **opts)
    if not later:
        PostgresInspector(conn).cancel(str(job))
    move(conn)
    PostgresInspector(conn).retry(str(job))
    assert line(conn) == [("new", job)]


@pytest.mark.parametrize("how", ["failed", "rescued", "given back", "put off"])
def test_a_running_job_ends_where_it_runs_and_its_next_run_is_in_the_new_line(conn, how):
    job, old = add(conn), process(conn, "old")
    claims = Claims(conn, "old", old)
    [claim] = claims.claim([KIND], 1)
    epoch = move(conn)
    assert bring_all(conn, epoch) == 0
    if how == "rescued":
        assert rescue(conn, {old: "dead"}) == {"dead": 1}
    elif how == "given back":
        assert claims.give_back([claim]) == 1
    else:
        delay = 0.0 if how == "failed" else 60.0
        last = Finish(claim.job_id, claim.token, "failed", "retryable", delay)
        assert finish(conn, old, [last]) == 1
    if how == "put off":
        conn.execute("update weirkeeper.scheduled set run_at = now()")
        promote(conn, "old")
    else:
        assert bring_all(conn, epoch) == 1
    assert line(conn) == [("new", job)]
    assert violations(conn, 60) == []


# ── two releases side by side ───────────────────────────────────────────────────────────────────


def lies(conn: Connection) -> str:
    return conn.execute("select queue from weirkeeper.kind where name = %s", (KIND,)).fetchone()[0]


def test_while_both_live_the_one_that_came_last_says_where_the_kind_lies(conn):
    job, old = add(conn), process(conn, "old")
    epoch = move(conn)
    assert bring(conn, "old", old, [KIND]) == 0
    assert lies(conn) == "new"
    assert bring_all(conn, epoch) == 1
    declare(conn, app("old"))  # a process of the old release starts again
    again = process(conn, "old")
    assert (bring_all(conn, epoch), lies(conn)) == (0, "old")
    assert bring(conn, "old", again, [KIND]) == 1
    assert line(conn) == [("old", job)]


@pytest.mark.parametrize(
    "left",
    ["phase = 'stopped'", "phase = 'draining'", "beat_at = now() - interval '16 s'",
     "rest_asked_at = now()"],
)  # fmt: skip
def test_when_it_has_left_the_youngest_that_claims_says_so(conn, left):
    """Else jobs would wait in a queue in which nobody knows them, until somebody starts again."""
    epoch = move(conn)
    declare(conn, app("old"))
    again = process(conn, "old")
    job = add(conn)
    assert bring_all(conn, epoch) == 0
    conn.execute(f"update weirkeeper.process set {left} where epoch = %s", (again,))
    assert bring_all(conn, epoch) == 1
    assert (lies(conn), line(conn)) == ("new", [("new", job)])


def test_one_that_rests_says_nothing(conn):
    move(conn)
    declare(conn, app("old"))
    conn.execute("update weirkeeper.process set rest_asked_at = now()")
    resting = conn.execute("select max(epoch) from weirkeeper.process").fetchone()[0]
    assert (bring(conn, "new", resting, [KIND]), lies(conn)) == (0, "old")


def test_a_younger_one_that_does_not_know_the_kind_says_nothing_of_it(conn):
    epoch = move(conn)
    declare(conn, app("old"))
    process(conn, "old", ("mv.other",))
    bring_all(conn, epoch)
    assert lies(conn) == "new"


# ── what is told ────────────────────────────────────────────────────────────────────────────────


def test_what_is_told_of_a_job_that_is_to_be_brought(conn):
    job = str(add(conn))
    inspector = PostgresInspector(conn)
    epoch = move(conn)
    told = inspector.explain(job)
    assert told.sentence == (
        "It lies in queue old, where kind mv.k was declared before: a process of queue new "
        "brings it over within seconds."
    )
    assert (told.waits_for, told.facts["queue"], told.facts["lies_in"]) == (
        "its queue",
        "new",
        "old",
    )
    assert inspector.overview(KIND)[0].counts["pending"] == 1
    assert inspector.overview(KIND)[0].oldest_pending_age is not None
    bring_all(conn, epoch)
    told = inspector.explain(job)
    assert "in line on queue new" in told.sentence
    assert "lies_in" not in told.facts
    assert inspector.get(job).queue == "old"  # where it was enqueued, which is how lists find it
    assert [found.id for found in inspector.list(JobFilter(queue="old"))] == [job]


def test_nobody_there_is_told_of_the_queue_where_the_kind_lies(conn):
    job = add(conn)
    declare(conn, app("new"))
    assert PostgresInspector(conn).explain(str(job)).sentence == (
        "It waits for a process: none of queue new that knows kind mv.k is running."
    )


def test_verify_grants_a_minute_and_brings_them_itself(conn):
    ready, later = add(conn), add(conn, run_at=datetime.now(UTC) + timedelta(hours=1))
    running = add(conn, priority=1)
    old = process(conn, "old")
    [claim] = Claims(conn, "old", old).claim([KIND], 1)
    declare(conn, app("new"))
    assert violations(conn, 60) == []
    conn.execute("update weirkeeper.kind set declared_at = now() - interval '61 s'")
    [found] = violations(conn, 60)
    assert (found.rule, found.subject) == ("row_astray", str(ready))
    assert found.detail == "in ready: queue old, of its kind: new"
    [done] = repair(conn, 60)
    assert (done.rule, done.subject) == ("row_astray", str(ready))
    assert violations(conn, 60) == []
    assert line(conn) == [("new", ready)]
    assert claim.job_id == running
    assert later in [n for (n,) in conn.execute("select job_id from weirkeeper.scheduled")]
    last = Finish(claim.job_id, claim.token)
    assert finish(conn, old, [last]) == 1
