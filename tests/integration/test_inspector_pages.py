"""Lists: filters, pages through windows, plans, args that are never read for nothing."""

from __future__ import annotations

import random
import time

import psycopg
import pytest

from shared.errors import InvalidArguments
from shared.jobs.port import JobFilter
from shared.postgres.driver.statements import statement
from shared.postgres.inspection.pages import Pages
from tests.support.steps import DISCARDED, fill, steps_fixture  # noqa: F401


@pytest.fixture
def mixed(steps):
    """Jobs of two kinds, two owners, with tags, args and ages."""
    return {
        "plain": steps.enqueue(),
        "tagged": steps.enqueue(tags=("red", "big")),
        "owned": steps.enqueue(owner_id="me", tags=("red",)),
        "other": steps.enqueue("t.size", {"text": "x", "n": 1}),
        "found": steps.enqueue("t.size", {"text": "y", "more": {"a": [1, 2]}}),
    }


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, "found other owned tagged plain"),
        ({"kind": "t.ok"}, "owned tagged plain"),
        ({"queue": "t"}, "found other owned tagged plain"),
        ({"queue": "u"}, ""),
        ({"owner_id": "me"}, "owned"),
        ({"tag": "red"}, "owned tagged"),
        ({"tag": "red", "owner_id": "me"}, "owned"),
        ({"tag": "re"}, ""),
        ({"kind": "t.size", "args": {"text": "y"}}, "found"),
        ({"created_after": "2100-01-01T00:00:00Z"}, ""),
        ({"created_before": "2100-01-01T00:00:00+01:00"}, "found other owned tagged plain"),
    ],
)
@pytest.mark.parametrize("state", [None, "pending", "running", "completed", "cancelled"])
def test_filters_agree_in_every_state(steps, mixed, searchable, wanted, names, state):
    move_to(steps, state)
    expected = [mixed[name] for name in names.split()]
    found = steps.inspector.list(JobFilter(state=state, **wanted))
    assert [job.id for job in found] == expected
    assert all(job.args is None for job in found)
    other = "discarded" if state != "discarded" else "pending"
    assert steps.inspector.list(JobFilter(state=other, **wanted)) == []


def move_to(steps, state):
    if state == "cancelled":
        steps.inspector.cancel_many(JobFilter())
    elif state in ("running", "completed"):
        for claim in steps.claim(("t.ok", "t.size")):
            if state == "completed":
                steps.finish(claim)


@pytest.fixture
def searchable(steps):
    steps.conn.execute(
        "update weirkeeper.kind set searchable = '{text,more}' where name = 't.size'"
    )


def test_args_are_compared_by_containment_and_only_by_declared_keys(steps, mixed, searchable):
    def found(args, kind="t.size"):
        return [job.id for job in steps.inspector.list(JobFilter(kind=kind, args=args))]

    assert found({"more": {"a": [2]}}) == [mixed["found"]]
    assert found({"text": "z"}) == []
    for args, kind, said in (
        ({"n": 1}, "t.size", r"declares as searchable \(text, more\); got n"),
        ({"text": "y"}, "t.ok", r"declares as searchable \(none\); got text"),
        ({"text": "y"}, None, "expected a kind beside them"),
        ({}, "t.size", "got no key"),
        ({"text": float("nan")}, "t.size", "args of the filter"),
    ):
        with pytest.raises(InvalidArguments, match=said):
            found(args, kind)


def test_a_filter_that_makes_no_sense_is_refused(steps):
    with pytest.raises(InvalidArguments, match="state: expected one of pending"):
        steps.inspector.list(JobFilter(state="lost"))
    for moment in ("yesterday", "2026-01-01T00:00:00"):
        with pytest.raises(InvalidArguments, match="created_after: expected a moment with a time"):
            steps.inspector.list(JobFilter(created_after=moment))


@pytest.mark.parametrize("state", [None, "pending", "completed", "cancelled"])
def test_a_rare_job_is_found_behind_many_windows(steps, monkeypatch, state):
    monkeypatch.setattr("shared.postgres.inspection.pages.WINDOW", 7)
    rare = [steps.enqueue(owner_id="rare") for _ in range(3)]
    for _ in range(40):
        steps.enqueue()
    last = steps.enqueue(owner_id="rare")
    move_to(steps, state)
    seen, before = [], None
    wanted = JobFilter(state=state, owner_id="rare")
    while page := steps.inspector.list(wanted, limit=2, before=before):
        seen += [job.id for job in page]
        before = page[-1].id
    assert seen == [last, *rare[::-1]]


def test_a_list_does_not_look_for_ever(steps, monkeypatch):
    monkeypatch.setattr("shared.postgres.inspection.pages.WINDOW", 2)
    monkeypatch.setattr("shared.postgres.inspection.inspector.FAR", 3)
    steps.enqueue(owner_id="rare")
    for _ in range(20):
        steps.enqueue()
    with pytest.raises(InvalidArguments, match="expected one that fits a job not too far back"):
        steps.inspector.list(JobFilter(owner_id="rare"))


@pytest.mark.parametrize("state", ["pending", "discarded"])
def test_no_job_is_passed_over_when_others_leave_the_window(
    steps, monkeypatch, state, database_url
):
    """Between the look at a window and the look for its end, some of its rows go."""
    monkeypatch.setattr("shared.postgres.inspection.pages.WINDOW", 10)
    looked = Pages._ids
    kept = steps.enqueue(owner_id="rare")
    others = [int(steps.enqueue()) for _ in range(10)]
    for claim in steps.claim() if state == "discarded" else ():
        steps.finish(claim, **DISCARDED)

    with psycopg.connect(database_url, autocommit=True) as other:

        def interrupted(pages, text, params):
            found = looked(pages, text, params)
            if not text.startswith("-- The last row"):
                gone = [others.pop() for _ in range(min(3, len(others)))]
                for table in ("ready", "attempt"):
                    other.execute(
                        f"delete from weirkeeper.{table} where job_id = any (%s)", (gone,)
                    )
            return found

        monkeypatch.setattr(Pages, "_ids", interrupted)
        found = steps.inspector.list(JobFilter(state=state, owner_id="rare"))
    assert [job.id for job in found] == [kept]
    assert len(others) < 10


@pytest.mark.parametrize("table", ["job", "ready", "attempt"])
def test_pages_are_looked_up_never_read_whole(steps, table):
    """Whatever the statistics say: the plans of tables that were empty when they were made."""
    fill(steps, 3000)
    steps.conn.execute("analyze")
    for name, state in (("newest", "pending"), ("newest", "completed"), ("waiting", "pending"),
                        ("ended", "discarded")):  # fmt: skip
        params = {
            **dict.fromkeys(("kind", "queue", "owner_id", "tag", "after", "until", "args")),
            "state": state, "tried": False, "completed": state == "completed",
            "before": 2**63 - 1, "window": 500, "limit": 50,
        }  # fmt: skip
        plan = "\n".join(
            row[0]
            for row in steps.conn.execute(
                "explain (costs off) " + statement(f"inspector/{name}"), params
            )
        )
        assert f"Seq Scan on {table} " not in plan, f"{name}: {plan}"


# ── huge args ─────────────────────────────────────────────────────────────────────────────────────


def test_a_page_of_the_largest_jobs_is_as_fast_as_one_of_small_ones(steps):
    args = {"text": random.Random(1).randbytes(65_000).hex() * 2}  # not to be compressed away
    for _ in range(100):
        steps.enqueue("t.size", args)
    took = []
    for _ in range(3):  # the quickest counts: other tests share the machine
        begun = time.monotonic()
        page = steps.inspector.list(JobFilter(kind="t.size", state="pending"), limit=100)
        took.append(time.monotonic() - begun)
        assert len(page) == 100
    assert min(took) < 0.3, took
    with pytest.raises(InvalidArguments, match="262144 bytes"):
        steps.enqueue("t.size", {"text": "x" * 1_000_000})
