"""Timers of a queue process: promotion, rescue, reconcile, marks, and the watch on claims."""

from __future__ import annotations

import pytest

from shared.errors import DatabaseUnavailable
from shared.jobs.inspect import Progress
from shared.jobs.work import Around, Cut, DeadOwner, Held, Mark
from tests.support.works import Clock, ScriptedWork, assignment, claim
from workers.attendance import STUCK, WATCH, ClaimsStuck
from workers.producer import Producer
from workers.scheduler import LOOK
from workers.upkeep import BRING, FRESH, MARK, PROMOTE, RECONCILE, RESCUE, Upkeep


class FakeExecutor:
    """Has what the test gives it."""

    def __init__(self):
        self.told = []
        self.poison = []
        self.started = []
        self.stale = []
        self.space = 2

    def unmarked(self):
        return self.started

    def poisonous(self):
        found, self.poison = self.poison, []
        return found

    def marks(self):
        told, self.told = self.told, []
        return told

    def take_back(self, older=0.0):
        return self.stale

    def stop(self, job_ids, reason):
        return []

    def room(self):
        return self.space


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def work():
    return ScriptedWork()


@pytest.fixture
def executor():
    return FakeExecutor()


@pytest.fixture
def killed():
    return []


@pytest.fixture
def assigned(tmp_path, clock):
    made = assignment(tmp_path, clock)
    yield made
    made.instruments.close()


@pytest.fixture
def producer(assigned):
    return Producer(assigned)


@pytest.fixture
def upkeep(assigned, executor, producer, killed):
    return Upkeep(assigned, executor, producer, killed.append)


def test_rows_that_were_never_heard_of_are_given_back(upkeep, work):
    upkeep.holdings.held[1] = claim(1, token=10)
    upkeep.holdings.held[2] = claim(2, token=20)
    work.rows = [Held(1, 10, 5.0), Held(2, 21, 5.0), Held(3, 30, 5.0)]
    upkeep.turn(work)
    assert work.given == [2, 3]


def test_a_reconnect_gives_the_buffer_back(upkeep, work, executor):
    executor.stale = [claim(4)]
    upkeep.holdings.held[4] = executor.stale[0]
    upkeep.connected(work)
    assert work.given == [4]
    assert upkeep.holdings.held == {}


@pytest.mark.parametrize("when", ["connected", "stale", "handed back", "quarantined"])
def test_claims_that_cannot_be_given_back_are_kept_until_they_can(upkeep, work, executor, when):
    """They are out of the buffer then: held by nobody, and taken for held by the reconciliation."""
    upkeep.holdings.held[4] = claim(4)
    executor.stale = [upkeep.holdings.held[4]] if when != "handed back" else []
    if when == "quarantined":
        executor.poison = [("t.ok", "5 children in a row died")]

    def handed_back(work):
        upkeep.holdings.give_back(work, [upkeep.holdings.held[4]])

    work.giving = [DatabaseUnavailable("crashed"), DatabaseUnavailable("starting up")]
    first = {"connected": upkeep.connected, "handed back": handed_back}.get(when, upkeep.turn)
    for act in (first, upkeep.connected):
        with pytest.raises(DatabaseUnavailable):
            act(work)
        executor.stale = []
        assert upkeep.holdings.owes
    upkeep.connected(work)
    assert work.given == [4]
    assert not upkeep.holdings.owes
    assert upkeep.holdings.held == {}


def test_giving_back_an_old_claim_leaves_a_newer_one_of_the_same_job(upkeep, work):
    upkeep.holdings.held[4] = claim(4, token=2)
    upkeep.holdings.give_back(work, [claim(4, token=1)])
    assert upkeep.holdings.held[4].token == 2


def test_what_dead_owners_left_is_killed_before_their_jobs_are_taken(upkeep, work, killed):
    work.dead = [DeadOwner(7, "dead", "7:1:2"), DeadOwner(8, "lease", None)]
    upkeep.turn(work)
    assert killed == [{"7:1:2"}]
    assert "rescue" in work.said


def test_a_job_that_is_due_is_promoted_on_time(upkeep, work, clock):
    work.due = (0, 0.3)
    upkeep.turn(work)
    upkeep._promotion.seconds = 100
    assert upkeep._promotion.at == pytest.approx(clock.now + 0.3)
    upkeep.expect(0.1)
    assert upkeep._promotion.at == pytest.approx(clock.now + 0.1)


def test_ticks_are_looked_for_at_once_and_again_when_the_next_is_due(upkeep, work, clock):
    work.next_tick = 0.4
    upkeep.turn(work)
    assert work.said.count("tick t.ok") == 1
    clock.now += 0.3
    upkeep.turn(work)
    assert work.said.count("tick t.ok") == 1
    clock.now += 0.1
    work.next_tick = 86_400.0  # the clock of the database may jump: no look is that far away
    upkeep.turn(work)
    assert work.said.count("tick t.ok") == 2
    clock.now += 5
    work.next_tick = None
    upkeep.turn(work)
    assert work.said.count("tick t.ok") == 3


def test_started_jobs_are_marked(upkeep, work, executor):
    executor.started = [claim(5)]
    upkeep.turn(work)
    assert "mark 5" in work.said


def test_what_jobs_told_of_their_progress_is_kept_about_once_a_second(
    upkeep, work, executor, clock
):
    kept = []
    for seconds in (0, 0.5, 0.6):
        clock.now += seconds
        executor.told.append(Mark(5, 35, Progress(seconds, 4)))
        upkeep.turn(work)
        kept.append([line for line in work.said if line.startswith("5: ")])
    assert kept == [["5: 0 of 4"], ["5: 0 of 4"], ["5: 0 of 4", "5: 0.5 of 4", "5: 0.6 of 4"]]


def test_a_kind_beyond_its_crash_budget_is_quarantined_before_anything_else(upkeep, work, executor):
    executor.poison = [("t.ok", "5 children in a row died: …")]
    executor.stale = [claim(8)]
    upkeep.turn(work)
    executor.stale = []
    assert work.said[0] == "quarantine t.ok: 5 children in a row died: …"
    assert 8 in work.given
    upkeep.turn(work)
    assert sum("quarantine" in line for line in work.said) == 1


def watched(upkeep, work, clock, seconds):
    """Turn as a queue process does, for so long."""
    for _ in range(int(seconds / WATCH)):
        clock.now += WATCH
        upkeep.turn(work)


def test_up_but_idle_is_an_error(upkeep, work, clock):
    work.waiting = STUCK + 1
    watched(upkeep, work, clock, STUCK - WATCH)
    with pytest.raises(ClaimsStuck, match="a job has been claimable for 61 s"):
        watched(upkeep, work, clock, WATCH)


@pytest.mark.parametrize(
    "why", ["nothing", "young", "busy", "resting", "stopped", "capped", "rate", "claims"]
)
def test_waiting_for_a_good_reason_is_none(upkeep, work, clock, executor, producer, why):
    work.waiting = {"nothing": None, "young": STUCK - 1}.get(why, STUCK + 1)
    executor.space = 0 if why == "busy" else 2
    producer.resting = why == "resting"
    if why == "stopped":
        producer.stop()
    producer.cut = Cut(capped=why == "capped", kinds=("t.ok",) if why == "rate" else ())
    for _ in range(3):
        watched(upkeep, work, clock, STUCK - WATCH)
        if why == "claims":
            producer.last_claim = clock.now


def test_what_somebody_else_has_locked_is_no_reason_nor_is_its_release(upkeep, work, clock):
    work.waiting, work.locked = 5 * STUCK, True
    watched(upkeep, work, clock, 5 * STUCK)
    work.locked = False  # the next claim takes it, which may come after this look
    watched(upkeep, work, clock, STUCK - WATCH)
    with pytest.raises(ClaimsStuck):
        watched(upkeep, work, clock, 2 * WATCH)


@pytest.mark.parametrize("what", ["a child is free", "the database is back"])
def test_old_jobs_are_left_to_the_next_claim_when(upkeep, work, clock, executor, what):
    work.waiting = 10 * STUCK
    if what == "a child is free":
        executor.space = 0
        watched(upkeep, work, clock, 2 * STUCK)
        executor.space = 1
    else:
        clock.now += 2 * STUCK
        upkeep.connected(work)
    watched(upkeep, work, clock, STUCK - WATCH)
    with pytest.raises(ClaimsStuck):
        watched(upkeep, work, clock, 2 * WATCH)


def test_nobody_wakes_for_claims_that_nobody_holds(upkeep, work, clock):
    """An idle process sleeps from one look at the database to the next."""

    def wakes(seconds: float) -> int:
        until, turns = clock.now + seconds, 0
        while clock.now < until:
            upkeep.turn(work)
            turns += 1
            clock.now += upkeep.waits() + 0.001
        return turns

    at_rest = wakes(20)
    assert at_rest <= 20 * (1 / PROMOTE + 1 / RESCUE + 1 / LOOK + 1 / WATCH)
    upkeep.holdings.held[5] = claim(5)
    assert wakes(20) >= 20 / MARK - 5 > at_rest


NOTHING = Around(ours=False, others=False, parked=False, ticks=False)
LOOKS = ("dead owners", "held", "unpark", "tick t.ok")


def asked(upkeep, work, clock, seconds):
    """Which statements were said, by a process that turns whenever something is due."""
    del work.said[:]
    until = clock.now + seconds
    while clock.now < until:
        try:
            upkeep.turn(work)
        except DatabaseUnavailable:
            assert work.connected
        clock.now += max(upkeep.waits(), 0.001)
    return {what: work.said.count(what) for what in (*LOOKS, "promote") if what in work.said}


def test_where_there_is_nothing_to_look_after_nothing_asks(upkeep, work, clock):
    work.around = NOTHING
    upkeep.connected(work)
    assert asked(upkeep, work, clock, 60).keys() == {"promote"}


@pytest.mark.parametrize(
    ("what", "look", "within"),
    [
        ("others", "dead owners", RESCUE),
        ("ours", "held", RECONCILE),
        ("parked", "unpark", RECONCILE),
        ("ticks", "tick t.ok", RESCUE),
    ],
)
def test_what_there_is_to_look_after_is_looked_after_as_soon_as_ever(
    upkeep, work, clock, what, look, within
):
    """A process that asked each time, as all do that know nothing, would see it as late."""
    work.around = NOTHING
    asked(upkeep, work, clock, 3.3 * RECONCILE)
    work.around = NOTHING._replace(**{what: True})
    assert asked(upkeep, work, clock, within + 0.01)[look] == 1
    period = LOOK if what == "ticks" else within
    assert asked(upkeep, work, clock, 60)[look] >= 60 / period - 1


def test_what_is_held_is_compared_whatever_the_look_around_saw(upkeep, work, clock):
    work.around = NOTHING
    upkeep.holdings.held[1] = claim(1, token=10)
    assert asked(upkeep, work, clock, 60)["held"] >= 60 / RECONCILE - 1


def test_a_look_around_that_fails_holds_nothing_up(upkeep, work, clock):
    work.around = NOTHING
    asked(upkeep, work, clock, 5)
    work.promoting = [DatabaseUnavailable("a lock on one table") for _ in range(1000)]
    asked(upkeep, work, clock, FRESH)
    found = asked(upkeep, work, clock, 60)
    assert all(found[look] >= 5 for look in LOOKS)


def test_after_a_reconnect_nothing_older_is_believed(upkeep, work, clock):
    """What was claimed just before may be ours without our having heard."""
    work.around = NOTHING
    asked(upkeep, work, clock, 5)
    work.rows = [Held(3, 30, 5.0)]
    work.around = NOTHING._replace(ours=True)
    upkeep.connected(work)
    upkeep.turn(work)
    assert work.given == [3]


def test_jobs_of_its_kinds_are_brought_here_batch_by_batch(upkeep, work, clock):
    """However many there are: claims come between two batches."""
    work.around = NOTHING
    upkeep.connected(work)
    upkeep.turn(work)
    del work.said[:]
    work.astray = [(1000, True), (0, True), (7, False)]
    clock.now += BRING
    for left in (2, 1, 0):
        upkeep.turn(work)
        assert len(work.astray) == left
        clock.now += 0.001
    upkeep.turn(work)
    assert work.said.count("bring t.ok") == 3
    clock.now += BRING
    upkeep.turn(work)
    assert work.said.count("bring t.ok") == 4
