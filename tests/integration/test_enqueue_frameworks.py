"""docs/enqueueing.md tells the truth: each way to enqueue runs as written, in one transaction."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest
import sqlalchemy

from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "enqueueing.md").read_text("utf-8")


def examples(section: str) -> list[str]:
    """The Python of one section."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert found, section
    return found


def run(source: str, **names: Any) -> dict[str, Any]:
    exec(compile(source, "docs/enqueueing.md", "exec"), names)
    return names


@pytest.fixture
def url(database_url: str) -> str:
    with psycopg.connect(database_url) as conn:
        conn.execute("create table orders (n integer)")
    return database_url


def found(url: str) -> tuple[int, list[str]]:
    """(orders, ids of jobs) that were committed."""
    with psycopg.connect(url) as conn:
        orders = conn.execute("select count(*) from orders").fetchone()[0]
        return orders, [r[0] for r in conn.execute("select id::text from weirkeeper.job")]


def without_commit(source: str) -> str:
    assert "session.commit()" in source
    return source.replace("session.commit()", "session.rollback()")


def test_psycopg(url):
    [sync, _] = examples("psycopg")
    with psycopg.connect(url) as conn:
        run(sync, conn=conn)
        conn.rollback()
        assert found(url) == (0, [])
        job = run(sync, conn=conn)["job_id"]
    assert found(url) == (1, [job])


def test_psycopg_for_asyncio(url):
    [_, source] = examples("psycopg")
    order_paid = run(source)["order_paid"]

    async def main() -> str:
        async with await psycopg.AsyncConnection.connect(url) as conn:
            await order_paid(conn)
            await conn.rollback()
            assert found(url) == (0, [])
            return await order_paid(conn)

    job = asyncio.run(main())
    assert found(url) == (1, [job])


@pytest.mark.parametrize(("section", "jobs"), [("Unique jobs", 1), ("Many at once", 10_000)])
def test_unique_and_many(url, section, jobs):
    [source] = examples(section)
    with psycopg.connect(url) as conn:
        run(source, conn=conn)
        conn.rollback()
        assert found(url)[1] == []
        run(source, conn=conn)
    assert len(found(url)[1]) == jobs


@pytest.mark.parametrize("which", [0, 1])
def test_sqlalchemy(url, which):
    source = examples("SQLAlchemy")[which]
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    run(without_commit(source), engine=engine)
    assert found(url) == (0, [])
    job = run(source, engine=engine)["job_id"]
    assert found(url) == (1, [job])
    engine.dispose()


def test_asyncpg(url):
    [source] = examples("asyncpg")
    order_paid = run(source)["order_paid"]

    async def main() -> str:
        conn = await asyncpg.connect(url)
        outer = conn.transaction()
        await outer.start()
        await order_paid(conn)
        await outer.rollback()
        assert found(url) == (0, [])
        job = await order_paid(conn)
        await conn.close()
        return job

    job = asyncio.run(main())
    assert found(url) == (1, [job])


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
    transaction.get_connection().close()
with transaction.atomic():  # and with the second one inside the first
    exec(source)
print(job_id)
ids = weirkeeper.Jobs(connection.connection).enqueue_many("corpus.index", [{}, {"x": "a'b"}])
print(*ids)
"""


def test_django(url):
    # In a process of its own: Django's settings are the process's, once and for all.
    [source] = examples("Django")
    parts = urlsplit(url)
    done = subprocess.run(
        [sys.executable, "-c", DJANGO],
        input=source, text=True, capture_output=True, timeout=60, cwd=ROOT, check=False,
        env={**os.environ, "NAME": parts.path[1:], "USER": parts.username or "",
             "PASSWORD": parts.password or "", "HOST": parts.hostname or "",
             "PORT": str(parts.port)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    until(lambda: found(url)[1] == done.stdout.split(), 5, "the jobs that committed are there")
    assert found(url)[0] == 1
