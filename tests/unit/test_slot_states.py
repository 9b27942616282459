"""The states of a child: the drawing is the code, and every way ends."""

from __future__ import annotations

import re
from pathlib import Path

from workers.pool.slot import MOVES, State

PAGE = Path(__file__).resolve().parents[2] / "docs" / "children.md"


def test_the_drawing_is_the_code():
    drawn = re.findall(r"^    (\w+) --> (\w+)", PAGE.read_text(), re.MULTILINE)
    coded = {(before.value, after.value) for before, afters in MOVES.items() for after in afters}
    assert set(drawn) == coded
    assert len(drawn) == len(coded)


def test_every_state_can_end_and_only_the_last_one_is_final():
    assert set(MOVES) == set(State)
    assert all(State.GONE in afters for state, afters in MOVES.items() if state is not State.GONE)
    assert MOVES[State.GONE] == set()
