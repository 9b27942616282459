"""Clauses 1 to 5 and 34: what an enqueue promises."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

import pytest

from shared.errors import InvalidArguments, NotFound, UnknownKind
from tests.conformance.engines import Bench
from weirkeeper import EnqueueOpts, Unique

UNIQUE = EnqueueOpts(unique=Unique())
LAST_DAY = datetime.max.replace(tzinfo=UTC)  # Postgres has it; not every program can read it


class Nowhere(tzinfo):
    """A time zone that does not know how far it is from UTC."""

    def utcoffset(self, moment: datetime | None) -> None: ...

    def dst(self, moment: datetime | None) -> None: ...

    def tzname(self, moment: datetime | None) -> str:
        return "nowhere"


def test_01_the_handler_gets_exactly_the_args(bench: Bench) -> None:
    args = {
        "big": 2**70 + 1,
        "beyond_doubles": 9007199254740993,
        "negative": -(2**63),
        "fraction": 0.1,
        "unicode": "Grüße, 𝔘𝔫𝔦, \u2028, ' \" \\ % %s {}",
        "": {"empty": [], "null": None, "true": True, "zero": 0},
        "deep": [[[[[{"a": [1, [2, [3]]]}]]]]],
    }
    job = bench.final(bench.enqueue("echo", args))
    assert job.result == args
    assert job.args == args


@pytest.mark.parametrize("number", [1e16, -1e23, 1.7976931348623157e308, 5e-324, 1.0, 10**400])
def test_01_a_number_stays_what_it_is(bench: Bench, number: float) -> None:
    """1e23 as jsonb has it, a one and 23 zeros, is an integer in Python that no float equals."""
    args = {"number": number, "text": '1e+23, -0.0, \\" 1e+23'}
    job = bench.final(bench.enqueue("echo", args))
    for found in (job.args, job.result, bench.waits.wait(job.id, 0).result):
        assert repr(found["number"]) == repr(number)
        assert found["text"] == args["text"]


def test_02_an_unknown_kind_fails_at_enqueue(bench: Bench) -> None:
    with pytest.raises(UnknownKind, match=r"no\.such\.kind"):
        bench.jobs.enqueue("no.such.kind", {})
    with pytest.raises(UnknownKind, match=r"no\.such\.kind"):
        bench.jobs.enqueue_many("no.such.kind", [{}])


@pytest.mark.parametrize(
    "args", [[1], "text", {"x": float("nan")}, {"x": "\x00"}, {"x": "\ud800"}, {"x": "y" * 300_000}]
)
def test_02_args_that_cannot_be_stored_fail_at_enqueue(bench: Bench, args: object) -> None:
    with pytest.raises(InvalidArguments):
        bench.jobs.enqueue("c.ok", args)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "opts",
    [
        {"priority": 0},
        {"priority": 5},
        {"max_attempts": 0},
        {"timeout": 0},
        {"tags": ("",)},
        {"tags": ("x",) * 17},
        {"concurrency_key": ""},
        {"owner_id": "x" * 201},
        {"priority": True},
        {"priority": 2.0},
        {"max_attempts": True},
        {"timeout": True},
        {"timeout": 10**400},
        {"awaited": 1},
        {"awaited": "no"},
        {"run_at": date(2030, 1, 1)},
        {"run_at": datetime(2030, 1, 1, tzinfo=Nowhere())},
        {"run_at": LAST_DAY},
        {"expires_at": LAST_DAY},
        {"unique": True},
    ],
)
def test_02_options_that_cannot_be_kept_fail_at_enqueue(bench: Bench, opts: dict) -> None:
    with pytest.raises(InvalidArguments):
        bench.enqueue("ok", **opts)


def test_02_a_moment_needs_a_time_zone(bench: Bench) -> None:
    naive = bench.engine.now().replace(tzinfo=None)
    for what in ("run_at", "expires_at"):
        with pytest.raises(InvalidArguments, match="time zone"):
            bench.enqueue("ok", **{what: naive})


def test_02_a_job_that_expires_before_its_time_is_refused(bench: Bench) -> None:
    moment = bench.engine.now() + timedelta(hours=1)
    with pytest.raises(InvalidArguments, match="such a job never runs"):
        bench.enqueue("ok", run_at=moment, expires_at=moment)


@pytest.mark.parametrize("opts", [None, {"priority": 1}, Unique()])
def test_02_options_are_given_as_such(bench: Bench, opts: Any) -> None:
    with pytest.raises(InvalidArguments, match="expected EnqueueOpts"):
        bench.jobs.enqueue("c.ok", {}, opts)


@pytest.mark.parametrize(
    "what",
    [
        {"by": ("\x00",)},
        {"by": ("\ud800",)},
        {"by": ()},
        {"period": True},
        {"period": float("nan")},
        {"period": 0.5},
        {"states": None},
        {"states": ("pending",)},
        {"wait": 0},
    ],
)
def test_02_a_uniqueness_that_cannot_be_kept_is_refused(what: dict) -> None:
    with pytest.raises(InvalidArguments):
        Unique(**what)


def test_03_the_job_exists_iff_the_transaction_commits_and_ran_once(bench: Bench) -> None:
    with bench.engine.transaction() as tx:
        kept = bench.jobs.with_tx(tx).enqueue("c.ok", {})
        with pytest.raises(NotFound):
            bench.inspector.get(kept)
    bench.final(kept)
    lost = []
    with bench.rolled_back() as tx:
        lost.append(bench.jobs.with_tx(tx).enqueue("c.ok", {}))
        lost += bench.jobs.with_tx(tx).enqueue_many("c.ok", [{}, {}])
    bench.final(bench.enqueue("ok"))
    for job in lost:
        with pytest.raises(NotFound):
            bench.inspector.get(job)
        assert not bench.effects(job)
    assert len(bench.effects(kept)) == 1


def test_04_unique_by_args_while_it_waits(bench: Bench) -> None:
    later = bench.engine.now() + timedelta(hours=1)
    opts = EnqueueOpts(unique=Unique(), run_at=later)
    first = bench.jobs.enqueue("c.ok", {"a": 1, "b": [1, 2]}, opts)
    assert bench.jobs.enqueue("c.ok", {"b": [1, 2], "a": 1}, UNIQUE) == first
    assert bench.jobs.enqueue("c.ok", {"a": 1, "b": [2, 1]}, opts) != first
    assert bench.jobs.enqueue("c.echo", {"a": 1, "b": [1, 2]}, opts) != first
    assert bench.jobs.enqueue("c.ok", {"a": 1, "b": [1, 2]}) != first


def test_04_unique_by_args_while_it_runs_and_after_completion(bench: Bench) -> None:
    with bench.held(unique=Unique()) as (first, args):
        assert bench.jobs.enqueue("c.hold", args, UNIQUE) == first
    bench.final(first)
    assert bench.jobs.enqueue("c.hold", args, UNIQUE) == first
    assert len(bench.effects(first)) == 1


def test_04_a_discard_and_a_cancel_release_it(bench: Bench) -> None:
    args = {"answer": "discard", "times": 1}
    first = bench.enqueue("answer", args, unique=Unique())
    assert bench.final(first).state == "discarded"
    second = bench.enqueue("answer", args, unique=Unique(), run_at=_in_an_hour(bench))
    assert second != first
    bench.inspector.cancel(second)
    third = bench.enqueue("answer", args, unique=Unique(), run_at=_in_an_hour(bench))
    assert third not in (first, second)


def test_04_unique_by_some_keys_of_the_args(bench: Bench) -> None:
    opts = EnqueueOpts(unique=Unique(by=("order",)), run_at=_in_an_hour(bench))
    first = bench.jobs.enqueue("c.ok", {"order": 7, "try": 1}, opts)
    assert bench.jobs.enqueue("c.ok", {"order": 7, "try": 2}, opts) == first
    assert bench.jobs.enqueue("c.ok", {"order": 8, "try": 1}, opts) != first


def test_04_numbers_that_the_database_keeps_apart_are_not_the_same(bench: Bench) -> None:
    """An integer and a float differ, whatever their size; the two zeros do not."""
    with bench.paused(kind="c.many"):
        numbers = (1, 1.0, True, 0.0, -0.0, 10**16, 1e16, 10**23, 1e23, "1")
        found = [bench.jobs.enqueue("c.many", {"zeros": n}, UNIQUE) for n in numbers]
        places = [found.index(job) for job in found]
        assert places == [0, 1, 2, 3, 3, 5, 6, 7, 8, 9]
        for job in set(found):
            bench.inspector.cancel(job)


def test_04_unique_but_not_against_completed_ones(bench: Bench) -> None:
    unique = Unique(states=("pending", "running", "retryable"))
    first = bench.enqueue("ok", {"n": "twice"}, unique=unique)
    bench.final(first)
    assert bench.enqueue("ok", {"n": "twice"}, unique=unique) != first


def test_04_unique_within_a_transaction_and_in_bulk(bench: Bench) -> None:
    opts = EnqueueOpts(unique=Unique(), run_at=_in_an_hour(bench))
    with bench.engine.transaction() as tx:
        jobs = bench.jobs.with_tx(tx)
        first = jobs.enqueue("c.echo", {"in": "tx"}, opts)
        assert jobs.enqueue("c.echo", {"in": "tx"}, opts) == first
    found = bench.jobs.enqueue_many("c.echo", [{"n": 1}, {"in": "tx"}, {"n": 1}, {"n": 2}], opts)
    assert found[1] == first
    assert found[0] == found[2]
    assert len(set(found)) == 3


def test_05_with_tx_leaves_the_original_intact(bench: Bench) -> None:
    with bench.rolled_back() as tx:
        inside = bench.jobs.with_tx(tx)
        assert inside is not bench.jobs
        lost = inside.enqueue("c.ok", {})
        kept = bench.jobs.enqueue("c.ok", {})
    assert bench.final(kept).state == "completed"
    with pytest.raises(NotFound):
        bench.inspector.get(lost)


def test_34_bulk_enqueue_is_atomic(bench: Bench) -> None:
    later = EnqueueOpts(run_at=_in_an_hour(bench), tags=("bulk",))
    found = bench.jobs.enqueue_many("c.never", [{"n": n} for n in range(10_000)], later)
    assert len(set(found)) == 10_000
    for n in (0, 4_999, 9_999):
        assert bench.inspector.get(found[n]).args == {"n": n}
    assert bench.jobs.enqueue_many("c.never", []) == []
    newest = bench.inspector.list(limit=1)[0].id
    with pytest.raises(InvalidArguments):
        bench.jobs.enqueue_many("c.never", [{"n": 1}, {"n": float("inf")}], later)
    for wrong in (None, 5, {"n": 1}, "[]"):
        with pytest.raises(InvalidArguments, match=r"args_list of kind c\.never: expected a list"):
            bench.jobs.enqueue_many("c.never", wrong, later)
    with pytest.raises(
        InvalidArguments, match=r"args_list\[1\] of kind c.never: expected a JSON obj"
    ):
        bench.jobs.enqueue_many("c.never", [{}, None], later)
    assert bench.inspector.list(limit=1)[0].id == newest


def _in_an_hour(bench: Bench):
    return bench.engine.now() + timedelta(hours=1)
