"""The one contract of everything that runs: start, started, stop; and how a stop arrives."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable

import pytest

from shared.services.group import ServiceGroup
from shared.services.service import ServiceThread, ticker
from shared.services.stop import StopSignal
from tests.support.waiting import until


def nothing(_: BaseException) -> None:
    """Nobody listens to deaths."""


def waiter(on_death: Callable[[BaseException], None] = nothing) -> ServiceThread:
    return ServiceThread("test waiter", lambda stop: (stop.wait(60), None)[1], on_death)


def left() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("test ")]


@pytest.fixture(autouse=True)
def no_thread_leaks():
    yield
    until(lambda: not left(), 5, "every thread of the test is gone")


def test_a_service_starts_and_stops():
    service = waiter()
    assert not service.started()
    service.start()
    service.start()
    assert service.started()
    assert left() == ["test waiter"]
    service.stop()
    service.stop()
    assert not service.started()


def test_a_stop_may_come_first():
    service = waiter()
    service.stop()
    service.start()
    assert not service.started()


def test_starts_and_stops_from_many_threads():
    for _ in range(30):
        service = waiter()
        threads = [
            threading.Thread(target=act) for act in (service.start, service.stop, service.stop)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        service.stop()
        assert not service.started()


def test_a_loop_that_dies_says_so():
    deaths: list[BaseException] = []
    service = ServiceThread("test dies", lambda _: {}["missing"], deaths.append)
    service.start()
    until(lambda: deaths, 5, "the death is told")
    assert isinstance(deaths[0], KeyError)
    service.stop()


def test_a_wait_that_the_event_cannot_end_is_woken():
    inner = threading.Event()
    service = ServiceThread("test deaf", lambda _: (inner.wait(60), None)[1], nothing, inner.set)
    service.start()
    service.stop(5)
    assert not service.started()


def test_a_ticker_ticks_at_once_and_again():
    ticks: list[int] = []
    service = ticker("test ticker", 0.01, lambda: ticks.append(1), nothing)
    service.start()
    until(lambda: len(ticks) >= 3, 5, "three ticks")
    service.stop()
    count = len(ticks)
    assert not service.started()
    assert len(ticks) == count


class Recorded:
    """A service that writes down what is asked of it."""

    def __init__(self, name: str, log: list[str], fails: str = "") -> None:
        self.name, self.log, self.fails, self.runs = name, log, fails, False

    def start(self) -> None:
        self.log.append(f"start {self.name}")
        if self.fails == "start":
            raise OSError(self.name)
        self.runs = True

    def started(self) -> bool:
        return self.runs

    def stop(self) -> None:
        self.log.append(f"stop {self.name}")
        self.runs = False
        if self.fails == "stop":
            raise OSError(self.name)


def test_a_group_stops_in_the_reverse_order():
    log: list[str] = []
    group = ServiceGroup([Recorded(n, log) for n in "abc"])
    group.start()
    assert group.started()
    group.stop()
    assert log == ["start a", "start b", "start c", "stop c", "stop b", "stop a"]
    assert not group.started()


def test_a_failing_start_stops_what_runs_and_raises():
    log: list[str] = []
    services = [Recorded("a", log), Recorded("b", log, "start"), Recorded("c", log)]
    with pytest.raises(OSError, match="b"):
        ServiceGroup(services).start()
    assert "start c" not in log
    assert not any(s.started() for s in services)


def test_a_failing_stop_keeps_nobody_running(caplog):
    log: list[str] = []
    services = [Recorded("a", log), Recorded("b", log, "stop"), Recorded("c", log)]
    group = ServiceGroup(services)
    group.start()
    group.stop()
    assert not any(s.started() for s in services)
    assert "did not stop cleanly" in caplog.text


def test_a_stop_signal_counts_requests_and_keeps_the_first_failure():
    stop = StopSignal()
    assert not stop.wait(0)
    assert select.select([stop], [], [], 0)[0] == []
    stop.request()
    stop.fail(KeyError("first"))
    stop.fail(ValueError("second"))
    assert (stop.requests, stop.requested) == (3, True)
    assert isinstance(stop.failure, KeyError)
    assert stop.wait()
    assert select.select([stop], [], [], 0)[0] == [stop]


def test_a_signal_is_a_request():
    kept = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        stop = StopSignal()
        stop.install()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(5)
        os.kill(os.getpid(), signal.SIGINT)
        until(lambda: stop.requests == 2, 5, "the second request")
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
