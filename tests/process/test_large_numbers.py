"""Numbers that no float holds: ids are text wherever JSON leaves the engine, values keep each digit."""

from __future__ import annotations

import json

import httpx
import pytest

from shared.postgres.application.waits import PostgresWaits
from tests.support.flow import answer
from tests.support.queue import TestQueue, queue
from tests.support.rows import address_when_ready
from weirkeeper import EnqueueOpts, Jobs

__all__ = ["queue"]

BEYOND = 2**53 + 1
HUGE = -(10**60) - 7
ENV = {"WEIRKEEPER_APP": "tests.support.app:app"}


def no_number(value: object, wanted: int) -> bool:
    """Whether an answer names something by text alone: nowhere as a number."""
    if isinstance(value, dict):
        return all(no_number(v, wanted) for v in value.values())
    if isinstance(value, list):
        return all(no_number(v, wanted) for v in value)
    return value != wanted or isinstance(value, str)


@pytest.mark.timeout(180)
def test_ids_are_text_and_values_are_exact(queue: TestQueue, programs, database_url) -> None:
    queue.conn.execute(f"alter sequence weirkeeper.job_id_seq restart with {BEYOND}")
    programs.start("listener", env=ENV)
    queue.start()
    job = Jobs(queue.conn).enqueue("t.ok", {"result": {"n": HUGE, "f": 0.1}}, EnqueueOpts())
    assert job == str(BEYOND)
    queue.final(job)

    with PostgresWaits(database_url, "test") as waits:
        assert waits.wait(job, 5).result == {"n": HUGE, "f": 0.1}
    address = address_when_ready(database_url, "listener")
    told = json.loads(httpx.get(f"http://{address}/v1/jobs/{job}/wait").text)
    assert told["id"] == job
    assert told["result"]["n"] == HUGE

    got = answer(programs, "jobs", "get", job, env=ENV)
    assert got["id"] == job
    assert got["args"]["result"]["n"] == HUGE
    listed = answer(programs, "jobs", "list", env=ENV)
    assert [found["id"] for found in listed] == [job]
    explained = answer(programs, "jobs", "explain", job, env=ENV)
    again = answer(programs, "jobs", "cancel", job, env=ENV)
    assert again["id"] == job
    assert all(no_number(said, BEYOND) for said in (told, got, listed, explained, again))
