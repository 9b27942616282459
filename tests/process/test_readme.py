"""The README's snippets work as they stand there, and so do its commands."""

from __future__ import annotations

import os
import re

import psycopg
import pytest

from panel.cli.main import COMMANDS
from tests.support.processes import ROOT
from tests.support.waiting import until

README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def shop(programs, database_url, tmp_path):
    """The README's application, declared, with its table; its processes run."""
    declared, _ = blocks("python")
    (tmp_path / "shop.py").write_text(declared)
    with psycopg.connect(database_url) as conn:
        conn.execute("create table orders (number integer)")
    env = {"WEIRKEEPER_APP": "shop:app", "PYTHONPATH": str(tmp_path)}
    programs.start("relay", env=env)
    programs.start("workers", "notify", env=env)
    with psycopg.connect(database_url, autocommit=True) as conn:
        until(lambda: ready(conn) == {"relay", "notify"}, 30, "both processes are ready")
        yield conn


def ready(conn: psycopg.Connection) -> set[str]:
    rows = conn.execute("select slot from weirkeeper.process where phase = 'ready'")
    return {row[0] for row in rows}


def ended(conn: psycopg.Connection) -> dict[str, list[str]]:
    """States by kind of the jobs that have ended."""
    rows = conn.execute(
        "select j.kind, array_agg(a.state) from weirkeeper.attempt a"
        " join weirkeeper.job j on j.id = a.job_id group by j.kind"
    )
    return dict(rows.fetchall())


def test_python_and_sql(shop, database_url):
    used: dict[str, object] = {"url": database_url}
    exec(blocks("python")[1], used)
    answer = used["answer"]
    assert (answer.finished, answer.state) == (True, "completed")
    assert answer.result == {"day": "2026-11-29", "orders": 1}
    (statements,) = blocks("sql")
    for text in statements.split(";"):
        if text.strip():
            shop.execute(text)
    both = {"order.confirm": ["completed"] * 2, "report.daily": ["completed"] * 2}
    until(lambda: ended(shop) == both, 20, "two confirmations and two reports")


def test_commands_exist():
    assert os.access(ROOT / "script/server", os.X_OK)
    assert os.access(ROOT / "script/test", os.X_OK)
    for name in set(re.findall(r"bin/weirkeeper (\w+)", README)):
        assert name in COMMANDS


def test_it_is_short():
    assert README.count("\n") < 130
