"""What the documentation says is so: files exist, tables and pictures equal the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from shared.config.env import SETTINGS
from shared.jobs.states import FINAL, MOVES, STATES
from tests.gates.source import ROOT, tracked

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)]*)?\)")
NAMED = re.compile(r"`([a-z_.]+/[\w./-]+\.(?:py|sql|md|toml|conf|yml|json))`")
PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")
MOVE = re.compile(r"^\s*(\[\*\]|\w+) --> (\[\*\]|\w+)", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", re.MULTILINE)


def read(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def pages() -> list[str]:
    return [p for p in tracked() if p.endswith(".md")]


def dead_links(path: str, text: str) -> Iterator[str]:
    """Links that lead nowhere, and files named in code that are not there."""
    here = PurePosixPath(path).parent
    for target, _ in LINK.findall(text):
        if not (ROOT / here / target).exists():
            yield f"{path}: link to {target}"
    for name in NAMED.findall(text):
        if "NNNN" in name or not (ROOT / name.split("/")[0]).is_dir():
            continue  # a pattern, or a place that is not of the checkout
        if not (ROOT / name).exists() and not (ROOT / here / name).exists():
            yield f"{path}: names {name}"


def moves(text: str) -> tuple[set[tuple[str, str]], set[str], set[str]]:
    """(moves, first states, last states) that a picture shows."""
    drawn = set(MOVE.findall(text))
    first = {after for before, after in drawn if before == "[*]"}
    last = {before for before, after in drawn if after == "[*]"}
    return {move for move in drawn if "[*]" not in move}, first, last


def settings(text: str) -> list[tuple[str, str, str]]:
    """(name, default, meaning) of each row of the table."""
    return [tuple(row) for row in ROW.findall(text)]  # type: ignore[misc]


def test_links_lead_somewhere():
    assert [said for path in pages() for said in dead_links(path, read(path))] == []


def test_pages_that_the_code_names_are_there():
    endings = (".py", ".sql", ".conf", ".toml")
    files = [p for p in tracked() if p.endswith(endings) and not p.startswith("tests/gates/")]
    named = {(page, path) for path in files for page in PAGE.findall(read(path))}
    assert len(named) > 5
    assert (
        sorted(f"{path} names {page}" for page, path in named if not (ROOT / page).exists()) == []
    )


def test_every_page_is_on_the_map():
    links = [str(PurePosixPath("docs") / to) for to, _ in LINK.findall(read("docs/README.md"))]
    linked = set(links)
    assert len(links) == len(linked), "a page is on the map twice"
    here = {p for p in pages() if p.startswith("docs/") and p.count("/") == 1}
    assert here - {"docs/README.md"} - linked == set()


def test_every_decision_is_in_the_index():
    index = read("docs/decisions/README.md")
    for path in pages():
        if re.fullmatch(r"docs/decisions/\d{4}-.*\.md", path):
            name = PurePosixPath(path).name
            assert f"[{name[:4]}]({name})" in index, path


def test_every_measurement_is_in_the_table():
    there = {PurePosixPath(p).stem for p in tracked() if re.fullmatch(r"bench/[a-z_]+\.py", p)}
    rows = re.findall(r"^\| `(\w+)` \|", read("bench/README.md"), re.MULTILINE)
    assert rows == sorted({name for name in there if not name.startswith("__")})


def test_the_walk_names_every_program():
    walk = read("docs/architecture.md")
    for path in tracked():
        if re.fullmatch(r"(relay|workers|listener|metrics)/[a-z_]+\.py", path):
            if path.endswith("__init__.py"):
                continue
            assert f"`{path}`" in walk, path


def test_the_picture_of_states_is_the_code():
    drawn, first, last = moves(read("docs/state_machine.md"))
    assert drawn == set(MOVES)
    assert first == {"pending"}
    assert last <= FINAL
    for state in STATES:
        assert re.search(rf"^\| {state} \|", read("docs/state_machine.md"), re.MULTILINE), state


def test_the_table_of_settings_is_the_code():
    expected = [
        (
            s.name,
            f"`{s.default}`" if s.default else "(empty)",
            s.meaning + (" (secret)" if s.secret else ""),
        )
        for s in SETTINGS
    ]
    assert settings(read("docs/settings.md")) == expected


def test_planted_faults_are_seen():
    assert list(dead_links("docs/planted.md", "see [x](nowhere.md)"))
    assert list(dead_links("docs/planted.md", "see `shared/nowhere.py`"))
    assert not list(dead_links("docs/planted.md", "[x](glossary.md) `shared/clock.py`"))
    text = read("docs/state_machine.md")
    assert moves(text.replace("pending --> running", "pending --> completed"))[0] != set(MOVES)
    assert moves(text + "\n    completed --> running")[0] != set(MOVES)
    assert settings("| `WEIRKEEPER_X` | `1` | a thing |") == [("WEIRKEEPER_X", "`1`", "a thing")]
