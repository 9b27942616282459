"""docs/sql_contract.md tells the truth: every example runs, every argument is as listed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from shared.app import load_app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sql_contract.md").read_text("utf-8")
EXPECTATION = re.compile(r"-- (gives|refused): (.*)")
PUBLIC = ("record_event", "enqueue", "enqueue_many")


def examples() -> Iterator[tuple[str, str, str]]:
    """(statement, "gives" or "refused" or "", what) of every example, in the page's order."""
    for block in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL):
        statement: list[str] = []
        lines = [line for line in block.splitlines() if line]
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if EXPECTATION.fullmatch(line):
                continue
            statement.append(line)
            if line.endswith(";"):
                found = EXPECTATION.fullmatch(following)
                yield "\n".join(statement), *(found.groups() if found else ("", ""))
                statement = []
        assert not statement, statement


def listed(function: str) -> list[tuple[str, str]]:
    """Arguments of a function as the page's table gives them."""
    section = PAGE.split(f"## `weirkeeper.{function}`")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", section, re.MULTILINE)


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


def test_every_example_does_what_it_says(conn):
    ran = 0
    for statement, expectation, what in examples():
        ran += 1
        if expectation == "refused":
            with pytest.raises(psycopg.Error) as refused:
                conn.execute(statement)
            assert refused.value.sqlstate == what, statement
            continue
        cursor = conn.execute(statement)
        if expectation == "gives":
            row = cursor.fetchone()
            said = str(row[0]).lower() if isinstance(row[0], bool) else str(row[0])
            assert said == what, statement
    assert ran > 40


def test_no_example_enqueues_a_kind_that_runs_for_events():
    """Such a job would have no event, and would end discarded."""
    kinds = set(re.findall(r"weirkeeper\.enqueue\('([\w.]+)'", PAGE))
    kinds |= set(re.findall(r"weirkeeper\.job \(kind.*\) values \('([\w.]+)'", PAGE))
    assert "corpus.reindex" in kinds
    assert not kinds & {subscription.name for subscription in load_app(None).subscriptions}


@pytest.mark.parametrize("function", PUBLIC)
def test_the_arguments_are_as_listed(conn, function):
    rows = conn.execute(
        "select a.name, format_type(a.type, null) from pg_proc p,"
        " unnest(p.proargnames, p.proargtypes::oid[]) with ordinality as a (name, type, n)"
        " where p.pronamespace = 'weirkeeper'::regnamespace and p.proname = %s order by a.n",
        [function],
    ).fetchall()
    assert rows
    assert listed(function) == rows


def test_every_sqlstate_of_ours_is_explained(conn):
    source = conn.execute(
        "select string_agg(prosrc, ' ') from pg_proc"
        " where pronamespace = 'weirkeeper'::regnamespace"
    ).fetchone()[0]
    raised = set(re.findall(r"'(WK\d{3})'", source))
    explained = set(re.findall(r"^\| `(WK\d{3})` \|", PAGE, re.MULTILINE))
    assert raised == explained
