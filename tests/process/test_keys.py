"""Concurrency keys in real queue processes: never more at once, whatever dies."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import defaultdict
from typing import Any

import pytest

from tests.support.queue import TestQueue, alive, children_of, queue
from tests.support.waiting import pause, until

__all__ = ["queue"]

KEYS = 5  # of each kind
JOBS = 500
SECONDS = {"sleep": 0.002, "pair": 0.02}


def add(queue: TestQueue, kind: str, number: int, keys: int = KEYS) -> dict[str, str]:
    """Enqueue jobs; their keys by id."""
    return {
        queue.enqueue(kind, {"seconds": SECONDS[kind]}, concurrency_key=f"{kind} {n % keys}"): (
            f"{kind} {n % keys}"
        )
        for n in range(number)
    }


def effects(queue: TestQueue) -> list[dict[str, Any]]:
    """What really happened, in order of time."""
    lines = queue.effects_path.read_text().splitlines()
    return sorted((json.loads(line) for line in lines), key=lambda e: float(e["at"]))


def most_at_once(entries: list[dict[str, Any]], keys: dict[str, str]) -> dict[str, int]:
    """For each key, how many of its jobs ran at once at most; a process that died runs nothing."""
    now: defaultdict[str, dict[str, int]] = defaultdict(dict)
    most: defaultdict[str, int] = defaultdict(int)
    for entry in entries:
        if entry["what"] == "killed":
            for running in now.values():
                for job in [job for job, pid in running.items() if pid in entry["pids"]]:
                    del running[job]
            continue
        key, job = keys[entry["job"]], entry["job"]
        if entry["what"] == "begin":
            now[key][job] = entry["pid"]
            most[key] = max(most[key], len(now[key]))
        else:
            now[key].pop(job, None)
    return most


def done(queue: TestQueue, number: int) -> bool:
    row = queue.conn.execute(
        "select count(distinct job_id) from weirkeeper.attempt where state = 'completed'"
    ).fetchone()
    return row is not None and row[0] == number


@pytest.mark.slow
def test_two_processes_never_run_more_of_a_key_than_its_kind_says(queue: TestQueue) -> None:
    keys = {**add(queue, "sleep", JOBS // 2), **add(queue, "pair", JOBS // 2)}
    for slot in ("one", "two"):
        queue.start("--slot", slot)
    until(lambda: done(queue, JOBS), 120, f"all {JOBS} jobs are done")
    entries = effects(queue)
    begun = [entry for entry in entries if entry["what"] == "begin"]
    assert len(begun) == JOBS, "each ran once"
    most = most_at_once(entries, keys)
    assert {key: n for key, n in most.items() if n > (2 if "pair" in key else 1)} == {}
    assert max(most.values()) == 2, "and as many as it says"
    assert len({entry["pid"] for entry in begun}) > 4, "children of both had some"
    order: defaultdict[str, list[int]] = defaultdict(list)
    for entry in begun:
        if "sleep" in keys[entry["job"]]:
            order[keys[entry["job"]]].append(int(entry["job"]))
    for key, ran in order.items():
        # The first ones are found by both at once; from then on all others are parked.
        assert ran[4:] == sorted(ran[4:]), key


def test_whoever_dies_the_next_job_of_the_key_starts(queue: TestQueue) -> None:
    program = queue.start()
    first = queue.enqueue("sleep", {"seconds": 600}, concurrency_key="k", max_attempts=1)
    child = queue.begun(first)["pid"]
    waiting = queue.enqueue("ok", concurrency_key="k")
    until(lambda: queue.where(waiting) == ["parked"], 10, "the second is parked")
    until(
        lambda: queue.conn.execute(
            "select 1 from weirkeeper.running where started_at is not null"
        ).fetchone(),
        10,
        "the first is known to have begun",
    )
    os.kill(child, signal.SIGKILL)
    os.kill(program.pid, signal.SIGKILL)
    queue.start()
    later = queue.enqueue("ok", concurrency_key="k")
    for job in (waiting, later):
        assert queue.final(job, 15)["state"] == "completed"
    assert queue.final(first)["state"] == "discarded"


@pytest.mark.soak
@pytest.mark.slow
def test_processes_that_are_killed_again_and_again_lose_no_place(queue: TestQueue) -> None:
    keys = add(queue, "sleep", 240, keys=4)
    chance = random.Random(7)
    queue.start("--slot", "stays")
    killed = []
    for _ in range(6):
        program = queue.start("--slot", "dies")
        pause(chance.random() * 0.5, "wherever it may be by then")
        pids = children_of(program)
        os.kill(program.pid, signal.SIGSTOP)  # so that nobody takes its jobs before they are gone
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        until(lambda pids=pids: not any(map(alive, pids)), 10, "its children are gone")
        killed.append({"what": "killed", "pids": sorted(pids), "at": time.monotonic()})
        os.kill(program.pid, signal.SIGKILL)
    queue.start("--slot", "dies")
    until(lambda: done(queue, 240), 120, "all jobs are done")
    entries = sorted([*effects(queue), *killed], key=lambda e: float(e["at"]))
    most = most_at_once(entries, keys)
    assert {key: n for key, n in most.items() if n > 1} == {}
    assert queue.count("parked") == queue.count("ready") == queue.count("running") == 0
