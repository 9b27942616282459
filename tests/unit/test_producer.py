"""When a queue process claims, and when it sleeps."""

from __future__ import annotations

import pytest

from shared.jobs.work import Cut
from tests.support.works import Clock, ScriptedWork, assignment, claim
from workers.producer import ASLEEP_POLL, Producer


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def producer(tmp_path, clock):
    made = assignment(tmp_path, clock)
    yield Producer(made)
    made.instruments.close()


@pytest.fixture
def work():
    return ScriptedWork()


def turns(producer, work, room=4, most=20):
    """Turn until there is nothing to do at once; return the claims."""
    found = []
    for _ in range(most):
        found += producer.turn(work, room)
        if producer.waits(room) > 0:
            return found
    raise AssertionError(f"never rests: {work.said}")


def test_an_empty_queue_is_looked_at_again_after_the_lock_then_it_sleeps(producer, work):
    assert turns(producer, work) == []
    assert work.said == ["claim 4", "fall asleep", "claim 4"]
    assert producer.waits(4) == ASLEEP_POLL


def test_claims_are_handed_over_before_anything_else(producer, work):
    work.claims = [[claim(1)], []]
    producer.turn(work, 1, lambda claims: work.said.append(f"take {len(claims)}"))
    assert work.said[:2] == ["claim 1", "take 1"]
    work.said.clear()
    turns(producer, work)
    work.claims = [[claim(2)]]
    work.said.clear()
    producer.look("wake")
    producer.turn(work, 1, lambda claims: work.said.append(f"take {len(claims)}"))
    assert work.said == ["claim 1", "take 1", "wake up"], "full: the locks are let go after it"


def test_a_claim_that_gave_up_among_parked_jobs_is_followed_by_another(producer, work, clock):
    work.cut = Cut(unfinished=True)
    for _ in range(5):
        clock.now += 1
        assert producer.turn(work, 4) == []
        assert producer.waits(4) == 0, "there may be more behind them"
    assert "fall asleep" not in work.said
    assert producer.last_claim == clock.now, "no reason to take it for stuck"
    work.cut = Cut()
    turns(producer, work)
    assert work.said[-2:] == ["fall asleep", "claim 4"]


def test_without_the_lock_it_polls_and_tries_again(producer, work, clock):
    work.asleep = [False, True]
    turns(producer, work)
    assert producer.waits(4) == pytest.approx(0.1)
    clock.now += 0.1
    turns(producer, work)
    assert work.said.count("fall asleep") == 2
    assert producer.waits(4) == ASLEEP_POLL


def test_a_notice_makes_it_look_and_one_job_does_not_wake_it_up(producer, work):
    turns(producer, work)
    work.said.clear()
    work.claims = [[claim(1)]]
    producer.look("wake")
    assert [c.job_id for c in turns(producer, work)] == [1]
    assert work.said == ["claim 4"]


def test_full_claims_follow_each_other_and_let_writers_be_silent(producer, work):
    turns(producer, work)
    work.said.clear()
    work.claims = [[claim(i) for i in range(4)], [claim(i) for i in range(4, 8)], [claim(9)]]
    producer.look("wake")
    assert len(turns(producer, work)) == 9
    assert work.said == [
        "claim 4", "wake up", "claim 4", "claim 4", "claim 4", "fall asleep", "claim 4",
    ]  # fmt: skip


def test_no_room_no_claim_and_writers_are_silent_meanwhile(producer, work):
    turns(producer, work)
    work.said.clear()
    producer.look("wake")
    assert producer.turn(work, 0) == []
    assert work.said == ["wake up"]
    work.claims = [[claim(1)]]
    assert len(producer.turn(work, 1)) == 1  # what woke it is not forgotten


def test_the_poll_is_the_net(producer, work, clock):
    turns(producer, work)
    work.claims = [[claim(1)]]
    assert producer.turn(work, 4) == []
    clock.now += ASLEEP_POLL
    assert len(producer.turn(work, 4)) == 1


def test_a_stopped_one_claims_nothing(producer, work):
    producer.stop()
    producer.look("wake")
    assert producer.turn(work, 4) == []
    assert work.said == []
