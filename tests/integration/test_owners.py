"""Who counts as dead: judged by boot, pid namespace, pid and start time, never by name or age."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest

from shared.config import queues
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.processes import life
from shared.postgres.processes.registry import BEAT, LEASE, SELF_FENCE
from shared.postgres.queues.rescues import MARGIN, SEEN, Beats, dead_owners, rescue
from shared.services.process import ProcessIdentity, identity
from tests.support.rows import enqueue
from tests.support.works import Clock
from workers import watchman

ANOTHER_BOOT = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HANDLER) as opened:
        yield opened


def owner(
    conn: Connection, who: ProcessIdentity, beat_age: float = 0.0, phase: str = "ready"
) -> int:
    """A process row as that process would have left it; its epoch."""
    [epoch] = conn.execute(
        "insert into weirkeeper.process (role, slot, queue, host, boot_id, pid_namespace, pid,"
        " pid_started, version, phase, connections, beat_at) values ('queue', 'index', 'index',"
        " %(host)s, %(boot_id)s, %(pid_namespace)s, %(pid)s, %(pid_started)s, '1', %(phase)s, 3,"
        " clock_timestamp() - make_interval(secs => %(age)s)) returning epoch",
        {**asdict(who), "phase": phase, "age": beat_age},
    ).fetchone()
    return epoch


def hold(conn: Connection, epoch: int, jobs: int = 1) -> list[int]:
    """Jobs that the process holds and has started long ago."""
    ids = [int(enqueue(conn)) for _ in range(jobs)]
    conn.execute("delete from weirkeeper.ready where job_id = any (%s)", (ids,))
    conn.execute(
        "insert into weirkeeper.running"
        " (job_id, run, attempt, queue, kind, priority, epoch, token, claimed_at, started_at)"
        " select j.id, 1, 0, 'index', 'corpus.index', 2, %s, j.id, now() - interval '2 days',"
        " now() - interval '2 days' from unnest(%s::bigint[]) j (id)",
        (epoch, ids),
    )
    return ids


def judged(conn: Connection) -> dict[int, str]:
    """Who is dead, as one knows it who has looked on for long enough."""
    clock = Clock()
    beats = Beats(clock)
    dead_owners(conn, 0, beats)
    clock.now += SEEN
    return dead_owners(conn, 0, beats)


def test_processes_with_one_name_and_pid_are_never_confused(conn):
    me = identity()
    expected = {
        # This very process, whatever its beat is like: only the lease speaks against it.
        owner(conn, me): None,
        owner(conn, me, beat_age=LEASE - 1): None,
        owner(conn, me, beat_age=LEASE + MARGIN + 1): "lease",
        # An earlier process that had our pid: gone, and known to be at once.
        owner(conn, replace(me, pid_started=me.pid_started - 1)): "dead",
        # Another boot (a machine of the same name, or this one before it went down): its pid tells
        # nothing here, so the lease decides.
        owner(conn, replace(me, boot_id=ANOTHER_BOOT)): None,
        owner(conn, replace(me, boot_id=ANOTHER_BOOT), beat_age=LEASE): None,
        owner(conn, replace(me, boot_id=ANOTHER_BOOT), beat_age=LEASE + MARGIN + 1): "lease",
        # Another container on this machine: the same pid is somebody else's.
        owner(conn, replace(me, pid_namespace=me.pid_namespace + 1)): None,
        owner(conn, replace(me, pid_namespace=1, pid_started=1), beat_age=60): "lease",
        # One that said that it stopped, though its pid lives again.
        owner(conn, me, phase="stopped"): "stopped",
    }
    for epoch in expected:
        hold(conn, epoch)
    found = judged(conn)
    assert {epoch: found.get(epoch) for epoch in expected} == expected


def test_the_age_of_a_run_never_counts(conn):
    alive = owner(conn, identity())
    hold(conn, alive, 3)  # for two days
    assert judged(conn) == {}


def test_an_owner_without_a_row_is_dead(conn):
    epoch = owner(conn, identity())
    ids = hold(conn, epoch, 3)
    conn.execute("delete from weirkeeper.process where epoch = %s", (epoch,))
    dead = judged(conn)
    assert dead == {epoch: "unregistered"}
    assert rescue(conn, dead) == {"unregistered": 3}
    rows = conn.execute("select job_id from weirkeeper.ready order by job_id").fetchall()
    assert [row[0] for row in rows] == ids


def test_a_thousand_rows_of_the_living_hide_no_row_of_the_dead(conn):
    alive, dead = owner(conn, identity()), owner(conn, identity(), phase="stopped")
    hold(conn, alive, 1000)
    [last] = hold(conn, dead)
    found = judged(conn)
    assert found == {dead: "stopped"}
    assert rescue(conn, found) == {"stopped": 1}
    assert conn.execute("select job_id from weirkeeper.ready").fetchall() == [(last,)]


def test_the_clocks_of_ownership_fit_into_each_other():
    """A life fences itself, and its children are gone, before anybody else may take its jobs."""
    assert watchman.FENCE == SELF_FENCE
    assert 3 * BEAT < SELF_FENCE, "two lost beats are no reason to fence"
    killed = SELF_FENCE + watchman.TICK + 1.0
    assert killed < LEASE, "fenced and dead before the lease is over"
    assert life.FAREWELL < LEASE
    assert watchman.HUNG <= LEASE < watchman.STUCK
    assert all(queue.timeout > 0 for queue in queues.QUEUES)
