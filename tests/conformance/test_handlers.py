"""What handlers may be, and what stands around them, whatever the adapter: async ones, hooks,
jobs that are put off while what they depend on is away.
"""

from __future__ import annotations

from tests.conformance.engines import Bench
from tests.support.waiting import until
from weirkeeper import Progress


def test_an_async_handler_answers_and_fails_like_any_other(bench: Bench) -> None:
    snoozed = bench.enqueue("coroutine", {"answer": "snooze", "seconds": 0.05})
    discarded = bench.enqueue("coroutine", {"answer": "discard"})
    nonsense = bench.enqueue("coroutine", {"answer": "nonsense"})
    assert [a.outcome for a in bench.final(snoozed).attempts] == ["snoozed", "completed"]
    assert bench.errors(bench.final(discarded).id) == ["not wanted"]
    assert "got int" in bench.errors(bench.final(nonsense).id)[0]


def test_hooks_see_every_run_and_one_that_is_broken_changes_nothing(bench: Bench) -> None:
    job = bench.final(bench.enqueue("hooked", {"times": 2, "message": "not yet"}))
    assert (job.state, [a.outcome for a in job.attempts]) == (
        "completed",
        ["failed", "failed", "completed"],
    )
    seen = [(e["outcome"], e.get("error")) for e in bench.effects(job.id, "hook")]
    assert seen == [("failed", "not yet"), ("failed", "not yet"), ("completed", None)]


def test_a_job_whose_dependency_is_away_is_put_off_and_spends_nothing(bench: Bench) -> None:
    job = bench.final(bench.enqueue("away", {"times": 3}, max_attempts=1))
    assert (job.state, job.attempt) == ("completed", 1)
    assert [(a.outcome, a.cause) for a in job.attempts] == [
        *([("snoozed", "outage")] * 3),
        ("completed", None),
    ]
    assert bench.errors(job.id) == ["ConnectionRefusedError: nobody answers"] * 3
    assert "away" in job.attempts[0].evidence["stack"]  # the traceback, as of a failure


def test_it_fails_when_that_lasts_beyond_the_horizon_and_then_waits_anew(bench: Bench) -> None:
    job = bench.final(bench.enqueue("gone", {"times": 1_000}, max_attempts=2))
    assert (job.state, job.attempt) == ("discarded", 2)
    outcomes = [a.outcome for a in job.attempts]
    first = outcomes.index("failed")
    assert first >= 2  # with 0.3 s in steps of 0.1 s (and a fifth at most)
    assert outcomes[first + 1 :].index("failed") >= 2
    assert outcomes.count("failed") == 2
    assert {a.cause for a in job.attempts} == {"outage"}
    assert (job.attempts[-1].error or "").endswith(
        "(away for longer than the 0.3 s that tries are free)"
    )


def test_other_errors_of_such_a_kind_are_failures(bench: Bench) -> None:
    job = bench.final(bench.enqueue("away", {}, max_attempts=1))
    assert (job.state, [a.outcome for a in job.attempts]) == ("discarded", ["failed"])
    assert bench.errors(job.id) == ["KeyError: 'times'"]


def test_explain_says_that_the_dependency_is_away(bench: Bench) -> None:
    job = bench.enqueue("slow_away", {"times": 1})
    told = bench.engine.until(
        lambda: (said := bench.inspector.explain(job)).waits_for == "snooze" and said,
        "the job is put off",
    )
    assert told.sentence.startswith(
        "What it depends on is away (ConnectionRefusedError: nobody answers), which spends no "
        "attempt: it runs at "
    )
    assert told.until is not None
    assert (told.state, told.facts["cause"]) == ("pending", "outage")
    bench.inspector.cancel(job)


def last_word(bench: Bench, job: str) -> Progress:
    """How far a job is, once it has told that last; a look may come between two words."""

    def shown() -> Progress | None:
        progress = bench.inspector.get(job).progress
        return progress if progress and progress.n == 5000 else None

    return until(shown, 10, "the job's last word")


def test_progress_is_shown_while_a_job_runs_and_the_last_word_is_never_lost(bench: Bench) -> None:
    with bench.held("stages") as (job, _):
        shown = last_word(bench, job)
        assert (shown.n, shown.of, str(shown)) == (5000, None, "5000")
    with bench.held("stages", {"of": 8000}) as (job, _):
        shown = last_word(bench, job)
        assert (shown.n, shown.of) == (5000, 8000)
        told = bench.inspector.explain(job)
        assert "attempt 1 of 1 (5000 of 8000 done), until" in told.sentence
        assert told.facts["progress"] == "5000 of 8000"
        answer = bench.waits.wait(job, 0)
        assert (answer.finished, answer.progress) == (False, shown)
    assert bench.final(job).progress is None
    assert bench.waits.wait(job, 0).progress is None
