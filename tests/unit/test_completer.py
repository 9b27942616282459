"""Ends that are not written yet: when they are written, and that none is lost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shared.errors import DatabaseRefused, DatabaseUnavailable
from tests.support.works import Clock, ScriptedWork, assignment, claim
from workers.completer import FLUSH_AFTER, FLUSH_AT, Completer
from workers.executor import Done
from workers.pool.slot import End
from workers.verdicts import verdict


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def woken():
    return []


@pytest.fixture
def completer(tmp_path, clock, woken):
    made = assignment(tmp_path, clock)
    yield Completer(made, lambda: woken.append(1))
    made.instruments.close()


def put(completer, clock, number, **more):
    held = claim(number, **more)
    ended = End(number, "completed", datetime(2026, 1, 1, tzinfo=UTC), 0.1, result='"x"')
    completer.put(Done(held, verdict(held, ended), clock.now))


def test_one_waits_5_ms_for_others(completer, clock, woken):
    assert completer.due_in() is None
    put(completer, clock, 1)
    assert woken == [1]
    assert completer.due_in() == pytest.approx(FLUSH_AFTER)
    clock.now += FLUSH_AFTER
    assert completer.due_in() == 0


def test_64_do_not_wait(completer, clock, woken):
    for number in range(FLUSH_AT):
        put(completer, clock, number)
    assert completer.due_in() == 0
    assert len(woken) == 2  # for the first and for the 64th


def test_an_awaited_one_does_not_wait_and_takes_the_others_along(completer, clock):
    work = ScriptedWork()
    put(completer, clock, 1)
    put(completer, clock, 2, awaited=True)
    assert completer.due_in() == 0
    assert [done.claim.job_id for done in completer.flush(work)] == [1, 2]
    assert completer.due_in() is None


def test_nothing_is_lost_while_the_database_is_away(completer, clock):
    work = ScriptedWork()
    work.errors = [DatabaseUnavailable("away"), DatabaseUnavailable("deadlock")]
    put(completer, clock, 1)
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable):
            completer.flush(work)
        assert completer.pending == 1
        assert completer.due_in() == 0
    assert len(completer.flush(work)) == 1
    assert completer.pending == 0


def test_what_the_database_refuses_is_written_alone_without_its_words(completer, clock):
    work = ScriptedWork()
    refused = DatabaseRefused("cannot store that")
    work.errors = [refused, refused]  # the batch, then its first row
    put(completer, clock, 1)
    put(completer, clock, 2)
    completer.flush(work)
    [first], [second] = work.finished
    assert (first.job_id, first.result, first.state) == (1, None, "completed")
    assert (second.job_id, second.result) == (2, '"x"')
