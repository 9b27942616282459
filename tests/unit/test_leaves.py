"""Clock, errors and states: what stands at the bottom."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import errors
from shared.clock import SYSTEM
from shared.errors import ConfigurationError, WeirkeeperError
from shared.events.globs import matches
from shared.jobs import states

segment = st.sampled_from(["a", "b", "note", "corpus"])
names = st.lists(segment, min_size=1, max_size=5).map(".".join)
globs = st.lists(segment | st.just("*"), min_size=1, max_size=5).map(".".join)


def test_the_clock_is_in_utc_and_never_goes_back():
    assert SYSTEM.wall().tzinfo is UTC
    assert SYSTEM.wall().utcoffset() == timedelta(0)
    readings = [SYSTEM.monotonic() for _ in range(100)]
    assert readings == sorted(readings)


def test_every_error_is_in_the_one_tree():
    found = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert len(found) > 8
    assert all(issubclass(e, WeirkeeperError) for e in found)
    passing = {e.__name__ for e in found if e.transient}
    assert {"DatabaseUnavailable", "SchemaTooOld"} <= passing
    assert "ConfigurationError" not in passing


def test_a_configuration_error_has_one_form():
    error = ConfigurationError.of("WEIRKEEPER_X", "a number", "seven", "set WEIRKEEPER_X to 7")
    assert str(error) == "WEIRKEEPER_X: expected a number; got 'seven'; set WEIRKEEPER_X to 7"


@pytest.mark.parametrize(
    ("glob", "name", "expected"),
    [
        ("corpus.note.changed", "corpus.note.changed", True),
        ("corpus.note.changed", "corpus.note", False),
        ("corpus.*", "corpus.note.changed", True),
        ("corpus.*", "corpus.note", True),
        ("corpus.*", "corpus", False),
        ("*", "corpus.note.changed", True),
        ("*.changed", "corpus.changed", True),
        ("*.changed", "corpus.note.changed", False),
        ("corpus.*.changed", "corpus.note.changed", True),
        ("corpus.*.changed", "corpus.a.b.changed", False),
        ("*.*", "corpus", False),
        ("*.*", "corpus.note.changed", True),
    ],
)
def test_globs(glob, name, expected):
    assert matches(glob, name) is expected


@given(name=names)
def test_a_name_matches_itself_and_the_star(name):
    assert matches(name, name)
    assert matches("*", name)


@given(glob=globs, name=names)
def test_a_star_in_place_of_a_word_never_matches_less(glob, name):
    parts = glob.split(".")
    for at in range(len(parts)):
        wider = ".".join(["*" if i == at else part for i, part in enumerate(parts)])
        assert matches(wider, name) or not matches(glob, name)


def test_moves_are_between_known_states_and_only_a_person_reopens():
    assert {state for move in states.MOVES for state in move} == set(states.STATES)
    assert {before for before, _ in states.MOVES if before in states.FINAL} == {
        states.DISCARDED,
        states.CANCELLED,
    }
    for state in states.STATES:
        assert (state, state) not in states.MOVES


def test_a_waiting_job_is_retryable_once_a_try_was_spent():
    assert [states.waiting_state(n) for n in (0, 1, 7)] == ["pending", "retryable", "retryable"]
