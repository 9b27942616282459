"""docs/sql_contract.md: its examples of other drivers run as written, and share the transaction."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import sqlalchemy

from weirkeeper.server import binaries
from weirkeeper.server.account import Account

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sql_contract.md").read_text("utf-8")
DJANGO = """
import os, sys
from django.conf import settings
settings.configure(DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["NAME"],
    "USER": os.environ["USER"], "PASSWORD": os.environ["PASSWORD"],
    "HOST": os.environ["HOST"], "PORT": os.environ["PORT"]}})
from django.db import transaction
source = sys.stdin.read()
try:
    with transaction.atomic():
        exec(source)
        raise KeyError
except KeyError:
    pass
exec(source)
print(event_id)
"""


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def url(database_url):
    with psycopg.connect(database_url) as conn:
        conn.execute("create table orders (n integer)")
    return database_url


def found(url: str) -> tuple[int, list[str]]:
    """(orders, ids of events) that were committed."""
    with psycopg.connect(url) as conn:
        orders = conn.execute("select count(*) from orders").fetchone()[0]
        return orders, [r[0] for r in conn.execute("select id::text from weirkeeper.event")]


def test_the_page_has_these_languages():
    assert [len(examples(name)) for name in ("python", "js", "sh")] == [2, 1, 1]


def test_sqlalchemy(url):
    source = examples("python")[0]
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    exec(compile(source.replace(".commit()", ".rollback()"), "page", "exec"), {"engine": engine})
    assert found(url) == (0, [])
    names = {"engine": engine}
    exec(compile(source, "page", "exec"), names)
    assert found(url) == (1, [names["event_id"]])
    engine.dispose()


def test_django(url):
    parts = urlsplit(url)
    done = subprocess.run(
        [sys.executable, "-c", DJANGO],
        input=examples("python")[1], text=True, capture_output=True, timeout=60, cwd=ROOT,
        check=False,
        env={**os.environ, "NAME": parts.path[1:], "USER": parts.username or "",
             "PASSWORD": parts.password or "", "HOST": parts.hostname or "",
             "PORT": str(parts.port)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert found(url) == (1, [done.stdout.strip()])


def test_the_shell(url):
    psql = binaries.find("", Account.choose("nobody")) / "psql"
    path = f"{psql.parent}{os.pathsep}{os.environ['PATH']}"

    def shell(source: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", source], env={"PATH": path, "DATABASE_URL": url}, text=True,
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip

    if not psql.exists() and shutil.which("psql") is None:
        pytest.skip("no psql")
    refused = shell(examples("sh")[0].replace("corpus.note.changed", "no.such.type"))
    assert refused.returncode != 0
    assert "declare it in the application" in refused.stderr
    assert found(url) == (0, [])
    done = shell(examples("sh")[0])
    assert done.returncode == 0, done.stderr
    assert found(url) == (1, [done.stdout.strip()])


def test_what_node_sends_is_sql_that_works(url):
    """Without its driver: the statements of the example, with their values, in their order."""
    (source,) = examples("js")
    statements = re.findall(r'client\.query\(\s*"([^"]+)"', source)
    assert [s for s in statements if s.startswith("select")] == statements[2:4]
    values = {2: ("corpus.note.changed", "writing://a", '{"note_id": "7"}'),
              3: ("corpus.reindex", '{"owner_id": "me"}', 1)}  # fmt: skip
    with psycopg.connect(url, autocommit=True) as conn:
        for n, statement in enumerate(statements[:5]):
            text = re.sub(r"\$\d", "%s", statement)
            conn.execute(text, values.get(n))
    assert found(url)[0] == 1
    assert len(found(url)[1]) == 1
