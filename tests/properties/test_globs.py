"""Globs, against the same rule written as a regular expression."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from shared.events.globs import matches

WORDS = st.sampled_from(["a", "b", "a_b", "paid"])
names = st.lists(WORDS, min_size=1, max_size=5).map(".".join)
globs = st.lists(WORDS | st.just("*"), min_size=1, max_size=5).map(".".join)


def as_pattern(glob: str) -> str:
    *rest, last = glob.split(".")
    one = r"[^.]+"
    many = rf"{one}(\.{one})*"
    parts = [one if segment == "*" else segment for segment in rest]
    return r"\.".join([*parts, many if last == "*" else last])


@given(globs, names)
def test_a_glob_is_the_regular_expression_that_it_stands_for(glob, name):
    assert matches(glob, name) == bool(re.fullmatch(as_pattern(glob), name))


@given(names)
def test_a_name_matches_itself_and_the_glob_of_everything(name):
    assert matches(name, name)
    assert matches("*", name)
