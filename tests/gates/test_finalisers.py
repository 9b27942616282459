"""Whatever ends a job for good also releases its uniqueness, in the same text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.gates.source import ROOT, tracked

# Completed jobs keep it: the finish of a plain success has nothing to release. The last is the
# notice itself.
KEEPS = ("shared/postgres/sql/completions/complete.sql", "function tell_final")
FUNCTION = re.compile(
    r"create (?:or replace )?function weirkeeper\.(\w+)(.*?\$\$.*?\$\$)", re.DOTALL
)


def texts() -> Iterator[tuple[str, str]]:
    """(name, SQL) of every statement and every function of the product."""
    for path in tracked():
        if path.startswith("shared/postgres/") and path.endswith(".sql"):
            text = (ROOT / path).read_text("utf-8")
            if "/migrations/" in path:
                yield from ((f"function {name}", body) for name, body in FUNCTION.findall(text))
            else:
                yield path, text


def forgetful(found: Iterator[tuple[str, str]]) -> list[str]:
    """Names of those that tell an end without a release."""
    return [
        name
        for name, text in found
        if "tell_final(" in text and "release_unique(" not in text and name not in KEEPS
    ]


def test_every_end_releases():
    names = [name for name, text in texts() if "tell_final(" in text]
    assert len(names) > 5
    assert forgetful(texts()) == []


def test_a_forgetful_one_is_seen():
    planted = "select weirkeeper.tell_final(array_agg(g.job_id)) from gone g"
    assert forgetful(iter([("planted", planted)])) == ["planted"]
