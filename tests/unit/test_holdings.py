"""What a process holds and what its database says it holds: each difference is mended, both ways."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from shared.errors import DatabaseUnavailable
from shared.jobs.work import Held
from tests.support.works import Clock, ScriptedWork, assignment, claim
from workers.holdings import Holdings


@pytest.fixture
def stopped():
    return []


@pytest.fixture
def buffered():
    return []


@pytest.fixture
def holdings(tmp_path, stopped, buffered):
    """Of a process that holds jobs 1, 2 and 3."""

    def stop(jobs, reason):
        stopped.append((sorted(jobs), reason))
        return [waiting for waiting in buffered if waiting.job_id in jobs]

    made = assignment(tmp_path, Clock())
    executor = SimpleNamespace(take_back=lambda: buffered, stop=stop)
    found = Holdings(made, executor, SimpleNamespace(look=lambda _: None))
    found.held.update({n: claim(n, token=n * 10) for n in (1, 2, 3)})
    yield found
    made.instruments.close()


@pytest.fixture
def work():
    """Of a database that knows job 2 alone."""
    made = ScriptedWork()
    made.rows = [Held(2, 20, 5.0)]
    return made


def test_what_both_sides_know_is_left_alone(holdings, work, stopped):
    work.rows = [Held(n, n * 10, 5.0) for n in (1, 2, 3)]
    holdings.compare(work)
    assert (work.said, work.given, stopped) == (["held"], [], [])


def test_a_claim_that_the_database_lost_is_taken_back_and_its_job_goes_on(holdings, work, stopped):
    work.in_line = {1, 3}
    holdings.compare(work)
    assert "retake 1 3" in work.said
    assert stopped == []
    assert set(holdings.held) == {1, 2, 3}


def test_one_that_is_somebody_elses_by_now_is_stopped(holdings, work, stopped):
    work.in_line = {1}
    holdings.compare(work)
    assert stopped == [([3], "interrupted")]
    assert set(holdings.held) == {1, 2, 3}, "until its end is written, and fenced"
    holdings.compare(work)
    assert len(stopped) == 2, "what was missed once is made good"


def test_one_that_no_child_has_begun_is_forgotten(holdings, work, buffered):
    buffered.append(holdings.held[3])
    holdings.compare(work)
    assert set(holdings.held) == {1, 2}


def test_one_that_came_round_again_under_another_token_is_both(holdings, work, stopped):
    """The newer claim goes back in line; what runs under the older one is stopped."""
    work.rows = [Held(1, 11, 0.1), Held(2, 20, 5.0), Held(3, 30, 5.0)]
    holdings.compare(work)
    assert work.given == [1]
    assert stopped == [([1], "interrupted")]


def test_a_reconnect_compares_at_once_and_fails_as_a_whole(holdings, work, stopped):
    """An end that is written before its claim is taken back would be fenced."""

    def fails(claims):
        raise DatabaseUnavailable("starting up")

    work.retake, retake = fails, work.retake
    with pytest.raises(DatabaseUnavailable):
        holdings.connected(work)
    work.retake, work.in_line = retake, {1, 3}
    holdings.connected(work)
    assert (set(holdings.held), stopped) == ({1, 2, 3}, [])
