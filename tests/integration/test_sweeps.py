"""Sweeps and floors: what commits late or comes back is found, and dead rows are not walked over."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import psycopg
import pytest

from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.prepared import prepared
from shared.postgres.queues import claims as module
from shared.postgres.queues.claims import Claims
from tests.support.claiming import KIND, add, ids, other
from tests.support.eager import eager_floors
from tests.support.waiting import until
from tests.support.works import Clock


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        yield opened


@pytest.fixture
def eager() -> Iterator[None]:
    with eager_floors():
        yield


@pytest.mark.usefixtures("eager")
def test_a_lone_writer_that_commits_late_is_never_passed_by_the_floor(conn):
    # Nothing else writes: the snapshots' xmax then is the writer's own id, and so is their xmin.
    claims = Claims(conn, "index", 1)
    with other(conn) as writer:
        [late] = add(writer)
        for _ in range(10):
            assert claims.claim([KIND], 2) == []
        writer.commit()
    assert ids(claims.claim([KIND], 2)) == [late]


@pytest.mark.usefixtures("eager")
def test_a_row_that_commits_late_is_claimed_at_the_next_look(conn):
    claims = Claims(conn, "index", 1)
    with other(conn) as writer:
        [late] = add(writer)
        for _ in range(5):
            add(conn, 3)
            while claims.claim([KIND], 2):
                pass
        assert claims.claim([KIND], 2) == []
        writer.commit()
        assert ids(claims.claim([KIND], 2)) == [late]


@pytest.mark.usefixtures("eager")
def test_a_claim_that_was_rolled_back_is_claimed_by_another(conn):
    claims = Claims(conn, "index", 1)
    jobs = add(conn, 3)
    with other(conn) as rival:
        taken = Claims(rival, "index", 2).claim([KIND], 2)
        assert ids(taken) == jobs[:2]
        assert ids(claims.claim([KIND], 10)) == jobs[2:]
        assert claims.claim([KIND], 10) == []
        rival.rollback()
    assert ids(claims.claim([KIND], 10)) == jobs[:2]


def test_a_row_that_commits_late_does_not_wait_for_the_end_of_a_line_that_has_none(conn):
    clock = Clock()
    claims = Claims(conn, "index", 1, clock)
    with other(conn) as writer:
        [late] = add(writer, priority=1)
        add(conn, priority=1)
        line = add(conn, 10)
        assert len(claims.claim([KIND], 1)) == 1, "the hint has passed the open writer's row"
        writer.commit()
    assert ids(claims.claim([KIND], 1)) == line[:1], "while claims come back full, they go on"
    clock.now += module.SWEEP_EVERY
    assert ids(claims.claim([KIND], 1)) == [late]
    assert ids(claims.claim([KIND], 1)) == line[1:2]


def test_a_claim_rolled_back_does_not_wait_for_the_end_of_a_line_that_has_none(conn):
    clock = Clock()
    claims = Claims(conn, "index", 1, clock)
    jobs = add(conn, 10)
    with other(conn) as rival:
        assert ids(Claims(rival, "index", 2).claim([KIND], 2)) == jobs[:2]
        assert ids(claims.claim([KIND], 1)) == jobs[2:3]
        rival.rollback()
    assert ids(claims.claim([KIND], 1)) == jobs[3:4]
    clock.now += module.SWEEP_EVERY
    assert ids(claims.claim([KIND], 3)) == [*jobs[:2], jobs[4]]


@pytest.mark.usefixtures("eager")
def test_floors_rise_while_a_line_never_ends(conn):
    clock = Clock()
    claims = Claims(conn, "index", 1, clock)
    add(conn, 20)
    for _ in range(4):
        assert len(claims.claim([KIND], 2)) == 2
        clock.now += module.SWEEP_EVERY
        claims.tidy()
    assert claims._floors.of((KIND, 2)) > 0


def test_a_sweep_that_takes_long_is_made_seldom(conn):
    class Slow(Clock):
        """Each look takes a second."""

        def monotonic(self) -> float:
            self.now += 1.0
            return self.now

    clock = Slow()
    claims = Claims(conn, "index", 1, clock)
    add(conn, 60)
    with other(conn) as rival:
        [first] = ids(Claims(rival, "index", 2).claim([KIND], 1))
        claims.claim([KIND], 1)
        rival.rollback()
    swept = clock.now
    while first not in ids(claims.claim([KIND], 1)):
        assert clock.now < swept + module.SWEEP_SHARE + 5
    assert clock.now > swept + module.SWEEP_SHARE, "a sweep took a second"


@pytest.mark.usefixtures("eager")
def test_floors_rise_past_dead_rows_while_a_reader_holds_a_snapshot(conn):
    claims = Claims(conn, "index", 1)
    with other(conn) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select 1 from weirkeeper.job")
        for _ in range(3):
            jobs = add(conn, 5)
            while claims.claim([KIND], 100):
                pass
        row = conn.execute("select max(job_id) from weirkeeper.running").fetchone()
        assert row == (jobs[-1],)
        last = conn.execute("select last_value from weirkeeper.ready_seq").fetchone()

        def risen() -> bool:
            claims.claim([KIND], 100)
            return claims._floors.of((KIND, 2)) == last[0]

        # Transactions of the server's other databases count as well, until they end.
        until(risen, 10, "the floor has risen past every dead row")


class Counted:
    """A session's connection, and how often it was asked something."""

    def __init__(self, pgconn):
        self.asked = 0
        self._pgconn = pgconn

    def __getattr__(self, name):
        return getattr(self._pgconn, name)

    def exec_prepared(self, *args):
        self.asked += 1
        return self._pgconn.exec_prepared(*args)


def test_who_waits_for_a_claim_waits_for_one_statement(conn):
    claims = Claims(conn, "index", 1, Clock())
    counted = Counted(conn.pgconn)
    for name in ("claims/claim", "claims/floors"):
        prepared(conn, name)._pgconn = counted
    for _ in range(5):
        add(conn)
        assert len(claims.claim([KIND], 4)) == 1
    assert counted.asked == 5
    claims.tidy()
    claims.tidy()
    assert counted.asked == 6, "what it learns can wait, and seldom changes"


def test_floors_rise_under_claims_that_always_find_something(conn):
    claims = Claims(conn, "index", 1)
    claims._lessons, claims._learned = 0, claims._clock.monotonic()  # nothing to learn for a while

    def risen() -> bool:
        add(conn, module.LEARN_AT)
        assert len(claims.claim([KIND], module.LEARN_AT + 1)) == module.LEARN_AT
        claims.tidy()
        return claims._floors.of((KIND, 2)) > 0

    until(risen, 0.8 * module.LEARN_LATE, "the floor has risen")


def test_nothing_is_lost_or_doubled_by_slow_writers_and_rolled_back_claims(conn):
    """8 writers, a fifth roll back, some slow to commit; two consumers, one aborting a third."""
    url = conn.info.dsn
    committed: list[int] = []
    claimed: list[int] = []
    writing = threading.Barrier(9)
    done = threading.Event()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(url, password=conn.info.password) as mine:
            writing.wait()
            for _ in range(40):
                new = add(mine, chance.randrange(1, 4), priority=chance.choice([1, 2]))
                if chance.random() < 0.3:
                    mine.execute("select pg_sleep(%s)", [chance.random() * 0.05])
                if chance.random() < 0.2:
                    mine.rollback()
                else:
                    mine.commit()
                    committed.extend(new)

    def abort() -> None:
        chance = random.Random(99)
        with psycopg.connect(url, password=conn.info.password) as mine:
            while not done.is_set():
                batch = Claims(mine, "index", 2).claim([KIND], 5)
                if chance.random() < 0.3:
                    mine.rollback()
                else:
                    mine.commit()
                    claimed.extend(ids(batch))

    writers = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    rival = threading.Thread(target=abort)
    for thread in [*writers, rival]:
        thread.start()
    writing.wait()
    claims = Claims(conn, "index", 1)
    while any(w.is_alive() for w in writers):
        claimed.extend(ids(claims.claim([KIND], 7)))
    done.set()
    rival.join()
    while batch := claims.claim([KIND], 7):
        claimed.extend(ids(batch))
    assert sorted(claimed) == sorted(committed)
