"""Blocking calls with a bound: results, errors, time that is over, threads that end."""

from __future__ import annotations

import threading
from itertools import count

import pytest

from shared.services import calls as module
from shared.services.calls import BoundedCalls, Overdue
from tests.support.waiting import until

NAMES = (f"bounded-{n}" for n in count())


@pytest.fixture
def name() -> str:
    return next(NAMES)


def threads(name: str) -> int:
    return len([t for t in threading.enumerate() if t.name == name])


def test_results_and_errors_come_back(name):
    calls = BoundedCalls(name, 2)
    assert [calls.call(lambda n=n: n * n, 20) for n in range(5)] == [0, 1, 4, 9, 16]
    with pytest.raises(ZeroDivisionError):
        calls.call(lambda: 1 // 0, 20)
    assert calls.call(lambda: "again", 20) == "again"
    assert threads(name) == 1, "one after the other needs one thread"


def test_no_thread_before_the_first_call(name):
    BoundedCalls(name, 4)
    assert threads(name) == 0


def test_what_takes_too_long_is_let_go_and_others_go_on(name):
    calls, free = BoundedCalls(name, 2), threading.Event()
    with pytest.raises(Overdue):
        calls.call(lambda: free.wait(30), 0.05)
    assert calls.call(lambda: "meanwhile", 20) == "meanwhile"
    free.set()


def test_there_are_never_more_threads_than_allowed(name):
    calls, free, ran = BoundedCalls(name, 3), threading.Event(), []
    for _ in range(3):
        with pytest.raises(Overdue):
            calls.call(lambda: free.wait(30), 0.02)
    for n in range(5):
        with pytest.raises(Overdue):
            calls.call(lambda n=n: ran.append(n), 0.02)
    assert threads(name) == 3
    free.set()
    assert calls.call(lambda: "free again", 20) == "free again"
    assert ran == [], "what nobody waited for any more was called"


def test_many_callers_at_once(name):
    calls, found, together = BoundedCalls(name, 4), [], threading.Barrier(16)

    def ask(n: int) -> None:
        together.wait(20)
        found.extend(calls.call(lambda: n, 20) for _ in range(50))

    asking = [threading.Thread(target=ask, args=(n,)) for n in range(16)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(60)
    assert sorted(found) == sorted(n for n in range(16) for _ in range(50))
    assert threads(name) <= 4


def test_threads_end_when_nothing_is_asked(name, monkeypatch):
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.02)
    calls = BoundedCalls(name, 2)
    for _ in range(20):
        assert calls.call(lambda: 1, 20) == 1
        until(lambda: threads(name) == 0, 20, "the thread has ended")
