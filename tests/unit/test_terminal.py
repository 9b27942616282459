"""Tables for people."""

from __future__ import annotations

from panel.cli.terminal import Column, Terminal, clean, shortened, wide

COLUMNS = (Column("id", right=True), Column("title", gives=True), Column("state"))
ROWS = [(7, "短い", "completed"), (12345, "a plain title", "running")]


def test_columns_line_up_with_wide_characters():
    lines = Terminal(coloured=False, width=None).table(COLUMNS, ROWS).split("\n")
    assert lines == [
        "   id  title          state",
        "    7  短い           completed",
        "12345  a plain title  running",
    ]
    assert {
        wide(line[: line.index(word)])
        for line, word in zip(lines, ("state", "comp", "runn"), strict=True)
    } == {22}


def test_a_narrow_terminal_shortens_what_gives():
    lines = Terminal(coloured=False, width=26).table(COLUMNS, ROWS).split("\n")
    assert lines[2] == "12345  a plain…  completed"[:16].rstrip() + "  running"
    assert all(wide(line) <= 26 for line in lines)


def test_colours_only_where_wanted():
    column = Column("state", style=lambda text: "red" if text == "bad" else "")
    assert "\x1b" not in Terminal(coloured=False, width=80).table([column], [["bad"]])
    painted = Terminal(coloured=True, width=80).table([column], [["bad"], ["good"]])
    assert "\x1b[31mbad\x1b[0m" in painted
    assert painted.endswith("\ngood")


def test_a_title_cannot_speak_to_the_terminal():
    assert clean("a\x1b[31mb\nc\x07\u202e") == "a�[31mb c��"
    assert clean(None) == "-"


def test_shortened_counts_cells():
    assert shortened("日本語テスト", 5) == "日本…"
    assert shortened("plain", 5) == "plain"
