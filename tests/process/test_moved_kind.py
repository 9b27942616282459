"""A release that declares a kind in another queue, with real processes: nothing waits for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from shared.app import load_app
from shared.postgres.inspection.verify import violations
from shared.postgres.queues.catalog import declare
from tests.support.processes import Program, Programs
from tests.support.queue import TestQueue

APP = "tests.support.moved_app"


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


class Releases(TestQueue):
    """Starts processes of one release or the other."""

    def __init__(self, programs: Programs, url: str) -> None:
        super().__init__(programs, url)
        declare(self.conn, load_app(f"{APP}:before"))

    def run(self, release: str, queue: str, slot: str) -> Program:
        return self.start("--slot", slot, queue=queue, WEIRKEEPER_APP=f"{APP}:{release}")


@pytest.fixture
def releases(programs: Programs, database_url: str) -> Iterator[Releases]:
    made = Releases(programs, database_url)
    yield made
    made.conn.close()


def test_jobs_go_after_their_kind_and_back_with_it_each_runs_once(releases: Releases) -> None:
    first = releases.run("before", "old", "old")
    runs = releases.enqueue("sleep", {"seconds": 4})
    releases.begun(runs)
    waiting = [releases.enqueue("ok") for _ in range(30)]
    later = releases.enqueue("ok", run_at=soon(1))
    releases.run("after", "new", "new")
    ends = {releases.final(job)["epoch"] for job in (*waiting, later)}
    assert len(ends) == 1
    assert releases.final(runs)["epoch"] not in ends  # it ended where it ran
    assert all(len(releases.effects(job)) == 1 for job in (runs, *waiting, later))

    again = releases.run("before", "old", "again")  # it declares the kind where it was
    assert releases.final(releases.enqueue("ok"))["epoch"] not in ends
    assert again.terminate() == 0  # and leaves: those that know the kind now take it up
    first.terminate()
    assert releases.final(releases.enqueue("ok"))["epoch"] in ends
    assert violations(releases.conn, 60) == []


def test_a_queue_that_is_gone_leaves_nothing_behind(releases: Releases) -> None:
    first = releases.run("before", "old", "old")
    runs = releases.enqueue("sleep", {"seconds": 3})
    releases.begun(runs)
    waiting, later = releases.enqueue("ok"), releases.enqueue("ok", run_at=soon(2))
    first.send(signal.SIGKILL)
    releases.run("later", "new", "new")
    assert {releases.final(job)["state"] for job in (waiting, later, runs)} == {"completed"}
    assert releases.outcomes(runs) == ["rescued", "completed"]
