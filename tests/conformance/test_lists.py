"""Clauses 15 to 18: lists and overviews."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

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
    assert found(order={"id": True}) == []


MISTAKES: list[Any] = [
    JobFilter(kind="c.searched", args={"elsewhere": 1}),
    JobFilter(kind="c.searched", args={}),
    JobFilter(kind="c.searched", args=["order"]),  # type: ignore[arg-type]
    JobFilter(kind="c.searched", args={1: 2}),  # type: ignore[dict-item]
    JobFilter(kind="c.searched", args={"order": float("nan")}),
    JobFilter(kind="c.searched", args={"order": "\x00"}),
    JobFilter(kind="c.ok", args={"order": 1}),
    JobFilter(args={"order": 1}),
    JobFilter(state="done"),
    JobFilter(state=5),  # type: ignore[arg-type]
    JobFilter(kind="\x00"),
    JobFilter(queue=5),  # type: ignore[arg-type]
    JobFilter(tag="\ud800"),
    JobFilter(created_after="2026-01-01"),
    JobFilter(created_before=5),  # type: ignore[arg-type]
    {"kind": "c.ok"},
    None,
]


@pytest.mark.parametrize("wanted", MISTAKES)
def test_16_a_filter_that_makes_no_sense_is_refused(bench: Bench, wanted: JobFilter) -> None:
    with pytest.raises(InvalidArguments, match=r"expected .*; got .*; \w+"):
        bench.inspector.list(wanted)


@pytest.mark.parametrize("page", [{"limit": n} for n in (0, -1, True, 1.5, "3", None, 2**70)])
def test_16_a_page_has_a_length(bench: Bench, page: dict) -> None:
    with pytest.raises(InvalidArguments, match="limit: expected a whole number, 1 or more; got"):
        bench.inspector.list(**page)


@pytest.mark.parametrize("before", ["x", "", "-1", "0", "01", "9" * 30, 0, True, 1.5])
def test_16_a_page_begins_below_a_job(bench: Bench, before: Any) -> None:
    with pytest.raises(InvalidArguments, match="before: expected the id of a job; got"):
        bench.inspector.list(before=before)


@pytest.mark.parametrize("state", [None, "discarded", "completed", "running"])
def test_16_many_are_moved_by_args_that_their_kind_declares(bench: Bench, state: Any) -> None:
    wanted = JobFilter(kind="c.ok", state=state, args={"nobody_declares": 1})
    for move in (bench.inspector.retry_many, bench.inspector.cancel_many):
        with pytest.raises(InvalidArguments, match=r"expected keys that kind c[.]ok"):
            move(wanted)


@pytest.mark.parametrize("name", ["\x00", 5, "\ud800"])
def test_16_a_name_is_text(bench: Bench, name: Any) -> None:
    look = bench.inspector
    for act in (
        lambda: look.overview(name),
        lambda: look.pause(queue=name),
        lambda: look.pause(kind=name),
        lambda: look.resume(queue=name),
        lambda: look.run_periodic(name),
        lambda: look.retry_many(JobFilter(state="completed", tag=name)),
    ):
        with pytest.raises(InvalidArguments, match=r"expected .*; got .*; \w+"):
            act()


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
