"""Who is dead when the database's clock is set: only who really is silent, and nobody alive."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from shared.postgres.driver.connect import connect
from shared.postgres.processes.registry import BEAT, LEASE
from shared.postgres.queues.rescues import MARGIN, SEEN, Beats, dead_owners
from tests.support.works import Clock

OWNER = 7
HOUR = 3600.0


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    """A database in which a process of another host holds a job."""
    with connect(database_url, "test") as made:
        made.execute(
            "insert into weirkeeper.process (epoch, role, queue, slot, host, boot_id, pid_namespace,"
            " pid, pid_started, version, phase, connections)"
            " overriding system value values (%s, 'queue', 'q', 'q', 'elsewhere', 'b', 1, 1, 1, '1', 'ready', 3)",
            (OWNER,),
        )
        made.execute(
            "insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token)"
            " values (1, 1, 0, 'q', 'q.ok', 2, %s, 1)",
            (OWNER,),
        )
        yield made


@pytest.fixture
def look(conn: psycopg.Connection):
    """Look on, as a queue process does; with or without beats; told when it is taken for dead."""
    clock = Clock()
    beats = Beats(clock)

    def beat(by: float) -> None:
        conn.execute(
            "update weirkeeper.process set beat_at = clock_timestamp() + make_interval(secs => %s)",
            (by,),
        )

    def looks(seconds: float, *, alive: bool, step: float = 0.0) -> float | None:
        """Seconds until it was taken for dead.

        Args:
            seconds: to look on for.
            alive: it beats.
            step: seconds that the database's clock is set forward at first: what was a beat of this
                moment is so much older by it.
        """
        if step:
            beat(-step)
        begun = clock.now
        while clock.now < begun + seconds:
            if dead_owners(conn, 1, beats):
                return clock.now - begun
            clock.now += BEAT
            if alive:
                beat(0.0)
        return None

    beat(0.0)
    return looks


def test_a_clock_that_is_set_forward_makes_nobody_dead_who_beats(look) -> None:
    assert look(60, alive=True) is None
    assert look(60, alive=True, step=HOUR) is None


def test_a_clock_that_is_set_back_delays_no_rescue(look) -> None:
    assert look(60, alive=True) is None
    assert look(60, alive=False, step=-HOUR) == pytest.approx(LEASE + MARGIN, abs=BEAT)


def test_whoever_was_silent_before_we_looked_is_dead_as_soon_as_we_are_sure(look) -> None:
    assert look(60, alive=False, step=LEASE + MARGIN + 1) == pytest.approx(SEEN, abs=BEAT)
