"""Migrations are numbered from 0001 on, each number once: two branches may both have taken the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tests.gates.source import tracked

FOLDER = "shared/postgres/migrations/"


def misnumbered(paths: Iterable[str]) -> Iterator[str]:
    """Complain about each number that two have, or none."""
    found = defaultdict(list)
    for path in paths:
        name = PurePosixPath(path).name
        found[int(name.partition("_")[0])].append(name)
    for number in range(1, max(found) + 1):
        names = sorted(found[number])
        if len(names) != 1:
            had = " and ".join(names) or "none"
            yield f"migration {number:04}: expected one file; got {had}; renumber the newest"


def test_each_number_is_there_once():
    paths = [p for p in tracked() if p.startswith(FOLDER) and p.endswith(".sql")]
    assert list(misnumbered(paths)) == []


def test_two_with_one_number_and_a_gap_are_refused():
    given = ["0001_a.sql", "0002_b.sql", "0002_c.sql", "0004_d.sql"]
    assert list(misnumbered(given)) == [
        "migration 0002: expected one file; got 0002_b.sql and 0002_c.sql; renumber the newest",
        "migration 0003: expected one file; got none; renumber the newest",
    ]
