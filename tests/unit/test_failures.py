"""Text of failures: storable, bounded, and still telling."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.jobs.failures import clean, describe, stack

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=300)


@given(ANY_TEXT, st.integers(20, 200))
def test_any_text_becomes_storable_and_bounded(text, limit):
    cleaned = clean(text, limit)
    assert len(cleaned.encode()) <= limit
    assert "\0" not in cleaned


@given(st.text(st.characters(blacklist_characters="\0", codec="utf-8"), max_size=100))
def test_good_text_stays_as_it_is(text):
    assert clean(text, 1000) == text


def test_a_long_text_keeps_its_beginning_and_its_end():
    cleaned = clean("begin" + "é" * 5000 + "end", 100)
    assert cleaned.startswith("begin")
    assert cleaned.endswith("end")
    assert " … " in cleaned


def test_an_error_is_told_with_its_type():
    assert describe(ValueError("no")) == "ValueError: no"
    assert describe(ValueError()) == "ValueError"


def test_an_error_that_cannot_be_told_is_told_all_the_same():
    class Bad(Exception):
        def __str__(self):
            raise RuntimeError

    assert describe(Bad()) == "Bad: (its message cannot be read)"
    assert "Bad" in stack(Bad())
