"""What kills cost: a killed child's job, a killed parent's jobs, and a flow under 500 kills.

`child`: SIGKILL of the child that runs a job, until the job's row is back in line (or runs again).
`parent`: SIGKILL of the queue process, until its jobs run again in the one that is started then,
as supervisord does. `flow`: jobs of 1 ms at 100/s while a random child is killed five times a
second: every job must be completed, completions must never pause for long, and no zombie, orphan or
descriptor may be left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.support.figures import quantile
from bench.support.report import Result, finish
from bench.support.stack import database
from tests.support.processes import Program, Programs
from tests.support.queue import TestQueue, children_of, server_of
from tests.support.waiting import pause, until

BACK = 100.0  # ms, p99, until a killed child's job is back in line
AGAIN = 3.0  # s, until a killed parent's jobs run again, from the restart
STALL = 2.0  # s without a completion
JOBS_A_SECOND, KILLS_A_SECOND = 100.0, 5.0
RUNS = "select run from weirkeeper.running where job_id = %s"
WAITS = (
    "select exists (select from weirkeeper.ready where job_id = %s)"
    " or exists (select from weirkeeper.scheduled where job_id = %s)"
)
UNFINISHED = (
    "select count(*) from weirkeeper.job j where j.id > %s and not exists"
    " (select from weirkeeper.attempt a where a.job_id = j.id and a.state = 'completed')"
)
PAUSES = (
    "select coalesce(max(gap), 0)::float8 from (select extract(epoch from finished_at"
    " - lag(finished_at) over (order by finished_at)) as gap from weirkeeper.attempt"
    " where job_id > %s and outcome = 'completed') g"
)


class Flow(NamedTuple):
    """What a flow under kills left."""

    kills: int
    jobs: int
    lost: float
    stall: float
    zombies: int
    orphans: int
    descriptors: int  # more than before


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when a target was missed."""
    parser = argparse.ArgumentParser("script/bench kills", description=__doc__)
    parser.add_argument("--children", type=int, default=200, help="kills of one child each (200)")
    parser.add_argument("--parents", type=int, default=7, help="kills of a parent (7)")
    parser.add_argument("--flow", type=int, default=500, help="kills while jobs flow (500)")
    args = parser.parse_args(argv)
    with _queue() as queue:
        back = _children(queue, args.children)
    with _queue() as queue:
        again = _parents(queue, args.parents)
    with _queue() as queue:
        flow = _flow(queue, args.flow)
    rows = [
        _row("child: back in line, ms", back),
        _row("parent: jobs run again, s", again),
        ("flow: longest pause, s", flow.jobs, flow.stall, flow.stall, flow.stall),
        *((f"flow: {name}", flow.kills, value, value, value) for name, value in _left(flow)),
    ]
    also = (
        Result("kills: parent, jobs run again", max(again), AGAIN, "lower"),
        Result("kills: flow, longest pause", flow.stall, STALL, "lower"),
        *(Result(f"kills: flow, {name}", value, 0, "lower") for name, value in _left(flow)),
    )
    result = Result("kills", quantile(back, 0.99), BACK, "lower", also=also)
    return finish(("what", "n", "p50", "p99", "max"), rows, result)


def _row(what: str, samples: Sequence[float]) -> tuple[str, int, float, float, float]:
    return what, len(samples), quantile(samples, 0.5), quantile(samples, 0.99), max(samples)


def _left(flow: Flow) -> list[tuple[str, float]]:
    return [
        ("jobs lost", float(flow.lost)),
        ("zombies", float(flow.zombies)),
        ("orphans", float(flow.orphans)),
        ("descriptors more than before", float(flow.descriptors)),
    ]


@contextmanager
def _queue() -> Iterator[TestQueue]:
    with database() as url, tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        programs = Programs(Path(folder), url)
        queue = TestQueue(programs, url)
        try:
            yield queue
        finally:
            programs.close()
            queue.conn.close()


def _children(queue: TestQueue, kills: int) -> list[float]:
    """Milliseconds from each kill until the job was back in line."""
    queue.start()
    job = queue.enqueue("sleep", {"seconds": 600}, max_attempts=kills + 1, timeout=700)
    taken = []
    for number in range(1, kills + 1):
        pid = queue.begun(job, times=number, timeout=30)["pid"]
        pause(0.01, "the kill falls into the run, not into its beginning")
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        while not _back(queue, job, number):
            pass
        taken.append((time.monotonic() - began) * 1000)
        # Deaths in a row without any job that ends are answered later and later.
        queue.final(queue.enqueue("ok"), timeout=60)
    return taken


def _back(queue: TestQueue, job: str, run: int) -> bool:
    row = queue.conn.execute(WAITS, (job, job)).fetchone()
    if row and row[0]:
        return True
    runs = queue.conn.execute(RUNS, (job,)).fetchone()
    return runs is not None and runs[0] > run


def _parents(queue: TestQueue, kills: int) -> list[float]:
    """Seconds from each restart until every job of the killed process ran again."""
    program = queue.start()
    jobs = [queue.enqueue("sleep", {"seconds": 600}, max_attempts=kills + 1) for _ in range(3)]
    taken = []
    for number in range(1, kills + 1):
        for job in jobs:
            queue.begun(job, times=number, timeout=30)
        os.kill(program.pid, signal.SIGKILL)
        program.wait(10)
        began = time.monotonic()
        program = queue.start()
        again = [queue.begun(job, times=number + 1, timeout=60)["at"] for job in jobs]
        taken.append(max(again) - began)
    return taken


def _flow(queue: TestQueue, kills: int) -> Flow:
    program = queue.start()
    warm = [queue.enqueue("sleep", {"seconds": 0.001}) for _ in range(50)]
    for job in warm:
        queue.final(job, timeout=60)
    before = _descriptors(program)
    last, dice = int(warm[-1]), random.Random(1)
    jobs = killed = 0
    began = time.monotonic()
    while killed < kills:
        passed = time.monotonic() - began
        if passed * JOBS_A_SECOND >= jobs:
            queue.enqueue("sleep", {"seconds": 0.001})
            jobs += 1
        elif passed * KILLS_A_SECOND >= killed:
            killed += _kill_one(program, dice)
        else:
            pause(0.001, "jobs and kills keep their pace")
    until(lambda: not _count(queue, UNFINISHED, last), 120, "every job is completed")
    until(lambda: len(children_of(program)) == 4, 60, "every child is replaced")
    return Flow(
        killed,
        jobs,
        _count(queue, UNFINISHED, last),
        float(_count(queue, PAUSES, last)),
        _zombies(queue),
        len(queue.programs.living()) - len(_family(program)),
        max(0, _descriptors(program) - before),
    )


def _kill_one(program: Program, dice: random.Random) -> int:
    living = sorted(children_of(program))
    if not living:
        return 0
    try:
        os.kill(dice.choice(living), signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def _count(queue: TestQueue, statement: str, *params: object) -> float:
    row = queue.conn.execute(statement, params).fetchone()
    return row[0] if row else 0


def _family(program: Program) -> set[int]:
    server = server_of(program)
    return {program.pid, server, *children_of(program)}


def _descriptors(program: Program) -> int:
    """Open files of the parent and its fork server."""
    pids = (program.pid, server_of(program))
    return sum(1 for pid in pids for _ in Path(f"/proc/{pid}/fd").iterdir())


def _zombies(queue: TestQueue) -> int:
    """Dead children that nobody has reaped."""
    found = 0
    for pid in Path("/proc").iterdir():
        if not pid.name.isdigit():
            continue
        try:
            fields = (pid / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents = {program.pid for program in queue.programs._started}  # noqa: SLF001
        found += fields[0] == "Z" and int(fields[1]) in parents
    return found
