"""How long jobs last: what is believed after what ran."""

from __future__ import annotations

import pytest

from workers.lengths import Lengths


def test_a_kind_that_never_ran_is_taken_for_slow():
    assert Lengths(1.0).of("t.ok") == 1.0


def test_one_long_job_is_believed_at_once_and_short_ones_by_and_by():
    lengths = Lengths(1.0)
    lengths.learn("t.ok", 0.001, 1)
    assert lengths.of("t.ok") == pytest.approx(0.9, abs=0.01)
    lengths.learn("t.ok", 0.001, 200)
    assert lengths.of("t.ok") == pytest.approx(0.001, rel=0.01)
    lengths.learn("t.ok", 3.0, 1)
    assert lengths.of("t.ok") == 3.0


def test_many_at_once_weigh_as_much_as_one_by_one():
    together, apart = Lengths(1.0), Lengths(1.0)
    together.learn("t.ok", 0.01, 20)
    for _ in range(20):
        apart.learn("t.ok", 0.01, 1)
    assert together.of("t.ok") == pytest.approx(apart.of("t.ok"))


def test_kinds_are_apart_and_the_longest_is_of_all():
    lengths = Lengths(1.0)
    lengths.learn("t.ok", 0.001, 200)
    lengths.learn("t.slow", 2.0, 1)
    assert lengths.of("t.ok") < 0.002
    assert lengths.longest == 2.0
    lengths.at_least(5.0)
    assert lengths.longest == 5.0
