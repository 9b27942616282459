"""The loop around the LISTEN connection: when it stands, and what a gap does."""

from __future__ import annotations

import threading

import pytest

from shared.errors import DatabaseUnavailable
from shared.notices.channels import FINAL
from shared.notices.source import NoticeSource, Watcher
from shared.notices.waiters import Waiters
from tests.support.waiting import until


class FakeEar:
    """Says what the test puts in; breaks and refuses when told."""

    def __init__(self) -> None:
        self.opens, self.closes, self.turns = 0, 0, 0
        self.refuse = False
        self.broken = threading.Event()
        self.said: list[tuple[str, str]] = []
        self.open_now = False

    def open(self) -> None:
        if self.refuse:
            raise DatabaseUnavailable("away")
        self.opens += 1
        self.open_now = True
        self.broken.clear()

    def notices(self, seconds: float) -> list[tuple[str, str]]:
        self.turns += 1
        if self.broken.wait(0.01):
            raise DatabaseUnavailable("gone")
        said, self.said = self.said, []
        return said

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        self.open_now = False
        self.closes += 1


class Log(Watcher):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def connected(self, *, again: bool) -> None:
        self.lines.append("again" if again else "first")

    def disconnected(self) -> None:
        self.lines.append("lost")

    def heard(self, channel: str) -> None:
        self.lines.append(channel)


@pytest.fixture
def ear():
    return FakeEar()


@pytest.fixture
def make(ear):
    made = []

    def source(waiters: Waiters, *, always: bool, watcher: Watcher | None = None) -> NoticeSource:
        made.append(NoticeSource(ear, waiters, pytest.fail, always=always, watcher=watcher))
        made[-1].start()
        return made[-1]

    yield source
    for each in made:
        each.stop()
    assert not ear.open_now


def test_it_hears_and_wakes(ear, make):
    waiters, woken, log = Waiters(), threading.Event(), Log()
    make(waiters, always=True, watcher=log)
    with waiters.register(FINAL, "7", woken.set):
        until(lambda: ear.open_now, 5, "connected")
        woken.clear()
        ear.said = [(FINAL, "6"), (FINAL, "7")]
        assert woken.wait(5)
    assert log.lines == ["first", FINAL, FINAL]


def test_after_a_gap_everybody_looks_again(ear, make):
    waiters, woken, log = Waiters(), threading.Event(), Log()
    source = make(waiters, always=True, watcher=log)
    until(lambda: source.connected, 5, "connected")
    with waiters.register(FINAL, "7", woken.set):
        ear.refuse = True
        ear.broken.set()
        until(lambda: not source.connected, 5, "the loss is seen")
        assert not woken.is_set()
        ear.refuse = False
        assert woken.wait(5), "a notice of the gap is lost: the waiter must look"
    assert log.lines == ["first", "lost", "again"]


def test_an_application_listens_once_it_is_wanted_and_while_somebody_waits(ear, make, monkeypatch):
    monkeypatch.setattr("shared.notices.source.LINGER", 0.05)
    waiters, woken = Waiters(), threading.Event()
    source = make(waiters, always=False)
    for times in (1, 2):
        with waiters.register(FINAL, "7", woken.set):
            assert not woken.wait(0.1), "who waits has to say so"
            source.want()
            assert woken.wait(5), "what was said before LISTEN is looked for after it"
            turns = ear.turns
            until(lambda: ear.turns > turns + 20, 5, "as long as one waits")  # noqa: B023
            assert source.connected
        until(lambda: not source.connected, 5, "closed when nobody waits")
        woken.clear()
        assert ear.opens == times


def test_it_may_be_wanted_before_it_was_started(ear):
    source = NoticeSource(ear, Waiters(), pytest.fail, always=False)
    source.want()
    until(lambda: source.connected, 5, "connected")
    source.stop()
    assert not ear.open_now


def test_a_stop_ends_a_source_that_nobody_wants(ear):
    source = NoticeSource(ear, Waiters(), pytest.fail, always=False)
    source.start()
    source.stop()
    assert not source.started()
    assert ear.opens == 0


def test_stop_is_idempotent_and_may_come_first(ear):
    source = NoticeSource(ear, Waiters(), pytest.fail, always=True)
    source.stop()
    source.start()
    assert not source.started()
    source.stop()
