"""Clauses 13, 14 and 31: waiting for the end of a job."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from shared.errors import InvalidArguments, NotFound
from shared.postgres.application import waits
from tests.conformance.engines import Bench
from tests.support.waiting import until


def test_13_wait_says_no_before_the_end_then_completed(bench: Bench) -> None:
    with bench.held() as (job, _):
        before = bench.waits.wait(job, 0.1)
        assert (before.state, before.finished) == ("running", False)
    after = bench.waits.wait(job, 10)
    assert (after.state, after.finished) == ("completed", True)
    told = bench.enqueue("ok", {"result": {"a": [1, None]}})
    bench.final(told)
    assert bench.waits.wait(told, 0).result == {"a": [1, None]}


def test_13_waiting_for_what_does_not_exist_is_an_error(bench: Bench) -> None:
    for nothing in ("9999999999", "x", "-1", "9" * 30, "²"):
        with pytest.raises(NotFound):
            bench.waits.wait(nothing, 1)


@pytest.mark.parametrize(
    "bound",
    [float("nan"), float("inf"), 10**400, "1", True, None],
    ids=lambda bound: f"{bound!r:.9}",
)
def test_13_a_bound_is_a_number_that_ends(bench: Bench, bound: Any) -> None:
    job = bench.enqueue("unclaimed", run_at=bench.engine.now() + timedelta(hours=1))
    with pytest.raises(InvalidArguments, match="max_seconds: expected a number of seconds"):
        bench.waits.wait(job, bound)
    assert not bench.waits.wait(job, -1).finished


def test_14_the_65th_waiter_is_answered_at_once(bench: Bench) -> None:
    job = bench.enqueue("unclaimed", run_at=bench.engine.now() + timedelta(hours=1))
    answers: list[bool] = []

    def wait() -> None:
        answers.append(bench.waits.wait(job, 20).finished)

    threads = [threading.Thread(target=wait) for _ in range(64)]
    for thread in threads:
        thread.start()
    until(lambda: _waiting(bench) == 64, 10, "64 callers wait")
    took = []
    for _ in range(5):  # the quickest counts: 64 threads and other tests share the machine
        began = time.monotonic()
        assert not bench.waits.wait(job, 20).finished
        took.append(time.monotonic() - began)
    assert min(took) < 0.2
    bench.inspector.cancel(job)
    for thread in threads:
        thread.join(10)
    assert answers == [True] * 64


WAYS = {
    "completed": ("ok", {}, "completed"),
    "discarded by its handler": ("answer", {"answer": "discard"}, "discarded"),
    "out of attempts": ("fail", {}, "discarded"),
    "cancelled": ("unclaimed", {}, "cancelled"),
    "expired": ("paused", {}, "discarded"),
}


@pytest.mark.parametrize("way", WAYS)
def test_31_whoever_waits_is_told_each_way_to_end(
    bench: Bench, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "POLL", 60.0)  # only a notice can be the reason
    kind, args, state = WAYS[way]
    opts = {"run_at": bench.engine.now() + timedelta(hours=1)}
    if way == "expired":
        opts = {"expires_at": bench.engine.now() + timedelta(seconds=1)}
    with bench.paused(kind="c.paused"):
        job = bench.enqueue(kind, args, **opts)
        answers: list[str] = []
        thread = threading.Thread(target=lambda: answers.append(bench.waits.wait(job, 30).state))
        thread.start()
        until(lambda: _waiting(bench) == 1, 10, "somebody waits")
        if way == "cancelled":
            bench.inspector.cancel(job)
        elif way == "expired":
            bench.engine.pass_time(1)
        else:
            bench.inspector.retry(job)
        bench.final(job)
        thread.join(10)
    assert answers == [state]


def _waiting(bench: Bench) -> int:
    """How many callers wait for jobs."""
    waiters = (
        bench.engine.runtime.store.waiters
        if bench.name == "memory"
        else bench.engine.runtime._waits._waiters
    )
    return waiters.count(waits.FINAL)
