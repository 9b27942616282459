"""The crash budget of a kind."""

from __future__ import annotations

from workers.crashes import BUDGET, Crashes


def test_five_deaths_in_a_row_of_two_jobs_are_one_too_many():
    crashes = Crashes()
    assert [crashes.died("a", job) for job in (1, 1, 1, 2, 1)] == [False] * 4 + [True]
    assert [crashes.died("a", job) for job in (3, 4, 3, 4)] == [False] * 4  # anew


def test_one_job_alone_never_is():
    crashes = Crashes()
    assert not any(crashes.died("a", 1) for _ in range(3 * BUDGET))
    assert crashes.died("a", 2)


def test_a_run_whose_child_lived_begins_the_count_anew():
    crashes = Crashes()
    for job in range(BUDGET - 1):
        assert not crashes.died("a", job)
    crashes.lived("b")
    crashes.lived("a")
    assert not crashes.died("a", 9)


def test_kinds_count_for_themselves():
    crashes = Crashes()
    for job in range(BUDGET - 1):
        assert not crashes.died("a", job)
        assert not crashes.died("b", job)
    assert crashes.died("a", 9)
    assert crashes.died("b", 9)
