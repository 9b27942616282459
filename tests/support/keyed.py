"""Jobs with concurrency keys: enqueued, claimed and ended in tests, and what must always be so."""

from __future__ import annotations

from typing import Any

from shared.jobs.work import Claim
from tests.support.steps import Steps

KEY = "k"


def add(steps: Steps, number: int = 1, key: str = KEY, **opts: Any) -> list[str]:
    """Enqueue jobs with one key."""
    return [steps.enqueue(concurrency_key=key, **opts) for _ in range(number)]


def let(steps: Steps, key: str, most: int, kind: str = "t.ok") -> None:
    """As if the kind were declared so."""
    steps.conn.execute("update weirkeeper.kind set max_per_key = %s where name = %s", (most, kind))


def ids(claims: list[Claim]) -> list[str]:
    return [str(claim.job_id) for claim in claims]


def places(steps: Steps, key: str = KEY) -> dict[str, list[str]]:
    """Ids of a key's jobs: those that run, were called, and are parked."""
    found = {}
    for name, table in (("running", "running"), ("called", "ready"), ("parked", "parked")):
        rows = steps.conn.execute(
            f"select job_id from weirkeeper.{table} where key = %s order by job_id", (key,)
        )
        found[name] = [str(row[0]) for row in rows]
    return found


def stuck(steps: Steps) -> list[str]:
    """Keys that could let a job go on and do not."""
    rows = steps.conn.execute("select name from weirkeeper.stuck_keys() s (name)")
    return [row[0] for row in rows]
