"""Clauses 15 to 18: lists and overviews."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.errors import InvalidArguments
from shared.jobs.states import STATES
from tests.conformance.engines import Bench, ids
from weirkeeper import JobFilter


def test_15_list_by_kind_and_state(bench: Bench) -> None:
    done = bench.enqueue("listed", owner_id="me", tags=("red", "blue"))
    bench.final(done)
    later = bench.engine.now() + timedelta(hours=1)
    waiting = [bench.enqueue("listed", run_at=later, tags=("red",)) for _ in range(5)]
    kind = JobFilter(kind="c.listed")
    newest_first = [*reversed([done, *waiting])]
    assert ids(bench.inspector.list(kind)) == newest_first
    assert ids(bench.inspector.list(JobFilter(kind="c.listed", state="completed"))) == [done]
    pending = JobFilter(kind="c.listed", state="pending")
    assert ids(bench.inspector.list(pending)) == [*reversed(waiting)]
    assert bench.inspector.list(JobFilter(kind="c.listed", state="running")) == []
    assert ids(bench.inspector.list(JobFilter(kind="c.listed", tag="blue"))) == [done]
    assert ids(bench.inspector.list(JobFilter(kind="c.listed", owner_id="me"))) == [done]
    assert bench.inspector.list(JobFilter(kind="c.listed", queue="one")) == []
    pages, before = [], None
    while page := bench.inspector.list(kind, limit=2, before=before):
        pages += ids(page)
        before = page[-1].id
    assert pages == newest_first
    [job] = bench.inspector.list(JobFilter(kind="c.listed", state="completed"))
    assert (job.args, job.attempts, job.owner_id, [*job.tags]) == (None, (), "me", ["red", "blue"])
    with pytest.raises(InvalidArguments, match="state"):
        bench.inspector.list(JobFilter(state="done"))


def test_16_list_by_args_contained_newest_first(bench: Bench) -> None:
    first, second, third = (
        bench.enqueue("searched", args)
        for args in (
            {"order": {"id": 7, "of": "eve"}, "lines": [1, 2]},
            {"order": {"id": 7}, "lines": [3]},
            {"order": {"id": 8}, "lines": [{"sku": "a", "n": 1}]},
        )
    )

    def found(**args: object) -> list[str]:
        return ids(bench.inspector.list(JobFilter(kind="c.searched", args=args)))

    assert found(order={"id": 7}) == [second, first]
    assert found(order={"id": 7, "of": "eve"}) == [first]
    assert found(lines=[2]) == [first]
    assert found(lines=[{"sku": "a"}]) == [third]
    assert found(order={"id": 7}, lines=[3]) == [second]
    assert found(order={"id": "7"}) == []
    for wanted in (
        JobFilter(kind="c.searched", args={"elsewhere": 1}),
        JobFilter(kind="c.ok", args={"order": 1}),
        JobFilter(args={"order": 1}),
    ):
        with pytest.raises(InvalidArguments):
            bench.inspector.list(wanted)


def test_17_overview_counts_and_tells_the_oldest(bench: Bench) -> None:
    bench.final(bench.enqueue("counted"))
    later = bench.engine.now() + timedelta(hours=1)
    cancelled = bench.enqueue("counted", run_at=later)
    bench.inspector.cancel(cancelled)
    with bench.paused(kind="c.counted"):
        bench.enqueue("counted")
        bench.engine.pass_time(0.3)
        bench.enqueue("counted")
        bench.enqueue("counted", run_at=later)
        [seen] = bench.inspector.overview("c.counted")
    assert (seen.kind, seen.queue, seen.paused) == ("c.counted", "c", True)
    expected = dict.fromkeys(STATES, 0) | {"pending": 3, "completed": 1, "cancelled": 1}
    assert dict(seen.counts) == expected
    assert seen.oldest_pending_age is not None
    assert 0.3 <= seen.oldest_pending_age < 10
    assert bench.inspector.overview("no.such.kind") == []


def test_18_overview_lists_kinds_that_never_ran(bench: Bench) -> None:
    overview = {seen.kind: seen for seen in bench.inspector.overview()}
    assert list(overview) == sorted(overview)
    seen = overview["c.unclaimed"]
    assert set(seen.counts) == set(STATES)
    assert (seen.counts["completed"], seen.oldest_pending_age) == (0, None)
    assert not seen.paused
