"""Starts of kinds with a rate are counted exactly, at a cost that does not grow with their number."""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.statements import statement
from shared.postgres.inspection.verify import violations
from shared.postgres.queues import retention
from shared.postgres.queues.lines import Lines
from shared.postgres.schema import migrator
from shared.postgres.schema.migrator import migrate, migrations
from tests.support.past import DAY, WEEK, never
from tests.support.plans import Watch
from tests.support.steps import EPOCH, KIND, QUEUE, steps_fixture  # noqa: F401

OTHER = "t.noop"
HOUR = 3_600_000
PRUNED = 100  # rows at most that one claim removes (0025)


def rate(conn: Connection, n: int, ms: int, kind: str = KIND) -> None:
    conn.execute(
        "update weirkeeper.kind set rate_n = %s, rate_ms = %s where name = %s", (n, ms, kind)
    )


def some(conn: Connection, number: int, kind: str = KIND) -> None:
    conn.execute(
        "insert into weirkeeper.job (kind) select %s from generate_series(1, %s)", (kind, number)
    )


def started(conn: Connection, kind: str, number: int, ago: str = "30 minutes") -> None:
    """Many starts at once, a millisecond apart, as claims of so long ago left them."""
    with conn.transaction():
        conn.execute("set local session_replication_role = replica")
        conn.execute(
            "insert into weirkeeper.rate_start (kind, n, at, total)"
            " select %s, 1, now() - %s::interval + n * interval '1 ms', n"
            " from generate_series(1, %s) n",
            (kind, ago, number),
        )


def rows(conn: Connection, kind: str = KIND) -> int:
    found = conn.execute("select count(*) from weirkeeper.rate_start where kind = %s", (kind,))
    return int(found.fetchone()[0])


def pass_(conn: Connection, seconds: float) -> None:
    """Time goes by."""
    conn.execute(
        "update weirkeeper.rate_start set at = at - make_interval(secs => %(s)s::float8),"
        " pruned_to = pruned_to - make_interval(secs => %(s)s::float8)",
        {"s": seconds},
    )


def room(conn: Connection, kind: str = KIND) -> tuple[int, float | None]:
    return conn.execute(statement("claims/rate_room"), {"kind": kind}).fetchone()


def counted(conn: Connection, kind: str = KIND) -> int:
    """What a look at every start of the period says."""
    [left] = conn.execute(
        "select greatest(0, k.rate_n - coalesce(sum(s.n), 0))::integer from weirkeeper.kind k"
        " left join weirkeeper.rate_start s on s.kind = k.name"
        "  and s.at > clock_timestamp() - make_interval(secs => k.rate_ms / 1000.0)"
        " where k.name = %s group by k.rate_n",
        (kind,),
    ).fetchone()
    return int(left)


def broken(conn: Connection) -> list[str]:
    """Kinds whose stored totals are not those of their rows."""
    return [v.subject for v in violations(conn, DAY) if v.rule == "starts_miscounted"]


# ── exact ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(4))
def test_two_sessions_at_random_agree_with_a_look_at_every_start(steps, seed):
    """Claims, claims undone, time that passes, rates that change, and rows that retention takes."""
    dice = random.Random(seed)
    rate(steps.conn, 50, HOUR)
    some(steps.conn, 2000)
    with closing(connect(steps.url, "two", Use.HOT)) as other:
        lines = [Lines(steps.conn, QUEUE, EPOCH), Lines(other, QUEUE, EPOCH + 1)]
        spent = 0
        for step in range(150):
            deed = dice.choice(["claim"] * 6 + ["undo", "pass", "pass", "change", "prune"])
            taking = dice.choice(lines)
            taking._closed.clear()
            left = counted(steps.conn)
            if deed == "claim":
                got = len(taking.claim([KIND], dice.randint(1, 9)))
                assert got <= left, step
                spent += got
            elif deed == "undo":
                with taking._conn.transaction(force_rollback=True):
                    taking.claim([KIND], 5)
            elif deed == "pass":
                pass_(steps.conn, dice.choice([1, 600, 1800, 3500, 3601, 9000]))
            elif deed == "change":
                ms = dice.choice([HOUR // 4, HOUR, 2 * HOUR])
                rate(steps.conn, dice.randint(1, 80), ms)
            else:
                retention.prune_records(steps.conn, WEEK, never)
            assert broken(steps.conn) == [], (step, deed)
            assert room(other)[0] == counted(steps.conn), (step, deed)
        assert spent > 100


def test_claims_at_once_of_which_some_are_undone_add_up(steps):
    rate(steps.conn, 40, 200)
    some(steps.conn, 3000)
    until = time.monotonic() + 3
    errors: list[BaseException] = []

    def work(epoch: int) -> None:
        dice = random.Random(epoch)
        try:
            with connect(steps.url, "work", Use.HOT) as conn:
                lines = Lines(conn, QUEUE, epoch)
                while time.monotonic() < until:
                    with conn.transaction(force_rollback=dice.random() < 0.3):
                        lines.claim([KIND], dice.randint(1, 5))
        except BaseException as error:  # noqa: BLE001  (told below)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(epoch,)) for epoch in (1, 2, 3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert broken(steps.conn) == []
    for thread in threads:
        thread.join()
    assert errors == []
    rate(steps.conn, 10_000, HOUR)
    assert room(steps.conn)[0] == counted(steps.conn)


def test_starts_of_a_clock_that_was_set_back_count_from_now(steps):
    """They were before now, so that they hold up nobody for longer than a period."""
    rate(steps.conn, 3, HOUR)
    some(steps.conn, 9)
    lines = Lines(steps.conn, QUEUE, EPOCH)
    assert len(lines.claim([KIND], 9)) == 3
    pass_(steps.conn, -DAY)
    left, opens = room(steps.conn)
    assert left == 0
    assert 3500 < opens <= 3600
    pass_(steps.conn, 3601)
    lines._closed.clear()
    assert len(lines.claim([KIND], 9)) == 3
    assert broken(steps.conn) == []
    assert rows(steps.conn) == 1, "those of before are gone"


# ── what it costs ───────────────────────────────────────────────────────────────────────────────


@contextmanager
def claims_of(url: str) -> Iterator[tuple[Connection, Callable[[str], int]]]:
    with closing(connect(url, "plans", Use.HOT)) as conn:
        lines = Lines(conn, QUEUE, EPOCH)

        def take(kind: str) -> int:
            lines._closed.clear()
            return len(lines.claim([kind], 1))

        yield conn, take


def pages(watch: Watch, kind: str, take: Callable[[str], int]) -> int:
    """Pages of the statements that keep the limit."""
    with watch.plans() as plans:
        assert take(kind) == 1
    return sum(
        p.pages for p in plans if "rate_room(" in p.text or "into weirkeeper.rate_start" in p.text
    )


def test_a_claim_costs_the_same_with_a_hundred_thousand_starts_as_with_a_hundred(steps):
    for kind, number in ((KIND, 100), (OTHER, 100_000)):
        rate(steps.conn, 1_000_000, HOUR, kind)
        some(steps.conn, 400, kind)
        started(steps.conn, kind, number)
    with claims_of(steps.url) as (conn, take):
        for kind in (KIND, OTHER) * 10:
            assert take(kind) == 1
        seconds: dict[str, list[float]] = {KIND: [], OTHER: []}
        for kind in (KIND, OTHER) * 200:
            begun = time.perf_counter()
            assert take(kind) == 1
            seconds[kind].append(time.perf_counter() - begun)
        few, many = (statistics.median(seconds[kind]) for kind in (KIND, OTHER))
        print(f"median: {few * 1e3:.3f} ms with 100 starts, {many * 1e3:.3f} ms with 100,000")
        assert many <= 1.5 * few
        watch = Watch(conn)
        few, many = (pages(watch, kind, take) for kind in (KIND, OTHER))
        print(f"pages: {few} and {many}")
        assert many <= few + 15, "indexes are a page or two deeper"


def test_starts_that_a_held_snapshot_keeps_are_not_walked_again(steps):
    """Ten thousand have left the period and are removed, which dead rows under a snapshot are not."""
    for kind in (KIND, OTHER):
        rate(steps.conn, 1_000_000, HOUR, kind)
        some(steps.conn, 400, kind)
    started(steps.conn, OTHER, 10_000, "2 hours")
    with psycopg.connect(steps.url) as holder, claims_of(steps.url) as (conn, take):
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from weirkeeper.rate_start")
        for _ in range(10_000 // PRUNED + 10):
            assert take(KIND) == take(OTHER) == 1
        assert rows(steps.conn, OTHER) < 200
        watch = Watch(conn)
        few, many = (pages(watch, kind, take) for kind in (KIND, OTHER))
        print(f"pages: {few} and {many}")
        assert many <= few + 15


def test_a_claim_after_a_pause_removes_a_bounded_part_of_what_was_before(steps):
    rate(steps.conn, 1_000_000, HOUR)
    some(steps.conn, 20)
    started(steps.conn, KIND, 1000, "2 hours")
    with claims_of(steps.url) as (_, take):
        for turn in range(1, 11):
            assert take(KIND) == 1
            assert rows(steps.conn) == 1000 - turn * PRUNED + turn
            assert room(steps.conn)[0] == 1_000_000 - turn
    assert broken(steps.conn) == []


# ── beside it ───────────────────────────────────────────────────────────────────────────────────


def test_retention_removes_starts_of_kinds_that_start_nothing_any_more(steps):
    for kind, ago in ((KIND, "2 hours"), (OTHER, "30 minutes"), ("t.fail", "8 days")):
        rate(steps.conn, 1_000_000, HOUR, kind)
        started(steps.conn, kind, 6000, ago)
    steps.conn.execute(
        "update weirkeeper.kind set rate_n = null, rate_ms = null where name = 't.fail'"
    )
    assert retention.prune_records(steps.conn, WEEK, never)["starts"] == 5999 * 2
    assert [rows(steps.conn, kind) for kind in (KIND, OTHER, "t.fail")] == [1, 6000, 1]
    some(steps.conn, 1)
    assert len(Lines(steps.conn, QUEUE, EPOCH).claim([KIND], 1)) == 1
    assert room(steps.conn)[0] == 999_999
    assert broken(steps.conn) == []


def test_starts_of_before_the_migration_are_counted(empty_database_url, monkeypatch):
    every = migrations()
    [new] = [m for m in every if m.name == "rate_totals"]
    with monkeypatch.context() as before:
        before.setattr(migrator, "migrations", lambda: every[: new.version - 1])
        migrate(empty_database_url)
    with connect(empty_database_url, "test", Use.HOT) as conn:
        conn.execute("insert into weirkeeper.queue (name, awaited) values ('q', false)")
        conn.execute(
            "insert into weirkeeper.kind (name, queue, max_attempts, timeout_ms, awaited, rate_n, rate_ms)"
            " select k, 'q', 1, 1, false, 9, %s from unnest(array['a.a', 'b.b']) k",
            (HOUR,),
        )
        conn.execute(
            "insert into weirkeeper.rate_start (kind, n, at)"
            " select k, n, now() - n * interval '25 minutes'"
            " from unnest(array['a.a', 'b.b']) k, generate_series(1, 3) n"
        )
        migrate(empty_database_url)
        assert broken(conn) == []
        # As an older release beside it does.
        conn.execute(statement("claims/rate_spend"), {"kind": "a.a", "n": 2})
        assert [room(conn, kind)[0] for kind in ("a.a", "b.b")] == [9 - 1 - 2 - 2, 9 - 1 - 2]
        assert broken(conn) == []
