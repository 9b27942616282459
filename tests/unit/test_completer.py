"""Ends that are not written yet: when they are written, and that none is lost."""

from __future__ import annotations

import pytest

from shared.errors import DatabaseRefused, DatabaseUnavailable
from shared.jobs.work import Completed
from tests.support.works import Clock, ScriptedWork, assignment, claim
from workers.completer import BATCH, FLUSH_AFTER, FLUSH_AT, Completer
from workers.executor import Done
from workers.pool.chunk import End
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
    ended = End(number, "completed", 1.8e9, 0.1, result='"x"')
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
    assert [claim.job_id for claim in completer.flush(work).claims] == [1, 2]
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
    assert len(completer.flush(work).finishes) == 1
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


def run_of(*numbers, **more):
    return Completed([claim(number, **more) for number in numbers], 1.8e9)


def test_plain_successes_are_written_by_themselves_and_counted(completer, clock, woken):
    work = ScriptedWork()
    completer.put_run(run_of(1, 2, 3), clock.now)
    put(completer, clock, 4)
    assert woken == [1]
    assert completer.pending == 4
    written = completer.flush(work)
    assert [[f.job_id for f in batch] for batch in work.finished] == [[1, 2, 3], [4]]
    assert [claim.job_id for claim in written.claims] == [1, 2, 3, 4]
    assert [finish.job_id for finish in written.finishes] == [4]
    assert completer.pending == 0


def test_what_was_written_is_not_written_again_when_the_rest_fails(completer, clock):
    work = ScriptedWork()
    completer.put_run(run_of(1), clock.now)
    completer.flush(work)
    completer.put_run(run_of(2), clock.now)
    put(completer, clock, 3)
    work.errors = [DatabaseUnavailable("away")]
    with pytest.raises(DatabaseUnavailable):
        completer.flush(work)
    assert completer.pending == 2
    assert [claim.job_id for claim in completer.flush(work).claims] == [2, 3]


def test_claims_that_were_written_are_told_even_when_the_rest_fails(completer, clock):
    """A crash may take what was written back: nobody gives a job back that is taken for held."""
    work = ScriptedWork()
    completer.put_run(run_of(1), clock.now)
    put(completer, clock, 2)
    finish, times = work.finish, []

    def second_fails(finishes):
        times.append(1)
        if len(times) == 2:
            raise DatabaseUnavailable("crashed")
        return finish(finishes)

    work.finish = second_fails
    with pytest.raises(DatabaseUnavailable):
        completer.flush(work)
    assert completer.pending == 1
    assert [claim.job_id for claim in completer.flush(work).claims] == [1, 2]


def test_a_batch_takes_whole_messages_and_leaves_the_rest_urgent(completer, clock):
    work = ScriptedWork()
    for first in range(0, 3 * BATCH, BATCH // 2 + 1):
        completer.put_run(run_of(*range(first, first + BATCH // 2 + 1)), clock.now)
    assert len(completer.flush(work).claims) == BATCH // 2 + 1
    assert completer.due_in() == 0


def test_an_awaited_success_does_not_wait(completer, clock):
    completer.put_run(run_of(1, awaited=True), clock.now)
    assert completer.due_in() == 0


def test_successes_that_the_database_refuses_are_written_one_by_one(completer, clock):
    work = ScriptedWork()
    refused = DatabaseRefused("cannot store that")
    work.errors = [refused, refused]
    completer.put_run(run_of(1, 2), clock.now)
    assert len(completer.flush(work).claims) == 2
    assert sorted(f.job_id for batch in work.finished for f in batch) == [1, 2]


def test_deliveries_are_counted_by_outcome_and_other_kinds_are_not(completer, clock):
    counted = completer._deliveries
    completer.put_run(run_of(1, 2, kind="webhook.deliver"), clock.now)
    put(completer, clock, 3)
    held = claim(4, kind="webhook.deliver")
    ended = End(4, "snoozed", 1.8e9, 0.1, delay=9.0)
    completer.put(Done(held, verdict(held, ended), clock.now))
    completer.flush(ScriptedWork())
    assert counted.labels("completed").get() == 2
    assert counted.labels("snoozed").get() == 1
