"""Rows as other parts of the product would write them, and process rows as they stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.support.waiting import until


@contextmanager
def session(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection in autocommit mode."""
    with psycopg.connect(url, autocommit=True) as conn:
        yield conn


def enqueue(conn: psycopg.Connection[Any]) -> str:
    """A job of the reference site; its id."""
    row = conn.execute("select weirkeeper.enqueue('corpus.index', '{\"id\": \"a\"}')").fetchone()
    return str(row[0])


def finish(
    conn: psycopg.Connection[Any], job_id: str, state: str = "completed", result: object = None
) -> None:
    """End a job as a completer would: row, log and notice in one transaction."""
    with conn.transaction():
        conn.execute("delete from weirkeeper.ready where job_id = %s", [int(job_id)])
        conn.execute(
            "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, result)"
            " values (%s, 1, 1, %s, %s, %s)",
            [int(job_id), state, state, None if result is None else json.dumps(result)],
        )
        conn.execute("select weirkeeper.tell_final(array[%s::bigint])", [int(job_id)])


def record(conn: psycopg.Connection[Any]) -> str:
    """An event of the reference site; its id."""
    sql = "select weirkeeper.record_event('corpus.note.changed', null, 'a')"
    return str(conn.execute(sql).fetchone()[0])


def fan_out(conn: psycopg.Connection[Any], event_id: str, jobs: dict[str, int]) -> None:
    """Fan an event out as the relay would, and announce it."""
    conn.execute(
        "insert into weirkeeper.event_fanout (event_id, jobs) values (%s, %s)",
        [event_id, json.dumps(jobs)],
    )
    conn.execute("select pg_notify('weirkeeper_fanout', %s)", [event_id])


def address_when_ready(url: str, role: str, seconds: float = 15) -> str:
    """Where a program answers, once its process row says that it is ready."""

    def look() -> str | None:
        with session(url) as conn:
            row = conn.execute(
                "select address from weirkeeper.process"
                " where role = %s and phase = 'ready' order by epoch desc limit 1",
                [role],
            ).fetchone()
        return row and row[0]

    return until(look, seconds, f"{role} is ready")
