"""Whether a blocked queue holds another up: index beside a webhook queue full of stuck jobs.

Sixteen jobs that do not end take all children of webhook and wait behind them. Jobs of no work on
index are timed one by one, from the commit to the handler's first line, in turns with and without
them: each round measures both, and the medians of the rounds' p99 are compared.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.support.figures import interleaved, median, quantile
from bench.support.report import Result, finish
from bench.support.stack import database
from shared.app import load_app
from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, connect
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues.catalog import declare
from tests.support.app import EFFECTS
from tests.support.processes import Programs
from tests.support.waiting import until

APP = "tests.support.every_queue:app"
STUCK = 16
RATIO = 1.2  # p99 beside stuck jobs against p99 alone
READY = "select count(*) from weirkeeper.process where phase = 'ready'"
HELD = "select count(*) from weirkeeper.running where queue = 'webhook'"


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when the target was missed."""
    parser = argparse.ArgumentParser("script/bench isolation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of both (7)")
    parser.add_argument("--jobs", type=int, default=200, help="timed jobs a round (200)")
    args = parser.parse_args(argv)
    with database() as url, tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        programs = Programs(Path(folder), url)
        programs.environment |= {"WEIRKEEPER_APP": APP, EFFECTS: str(Path(folder) / "effects")}
        try:
            with closing(connect(url, "bench")) as conn:
                taken = _measured(programs, conn, args.rounds, args.jobs)
        finally:
            programs.close()
    rows = [(what, len(p99s), min(p99s), median(p99s), max(p99s)) for what, p99s in taken.items()]
    alone, beside = median(taken["alone"]), median(taken["beside stuck jobs"])
    result = Result("isolation", beside, RATIO, "lower", alone, relative=True)
    return finish(("p99 ms of index", "rounds", "least", "median", "most"), rows, result)


def _measured(
    programs: Programs, conn: Connection, rounds: int, jobs: int
) -> dict[str, list[float]]:
    declare(conn, load_app(APP))
    for queue in ("index", "webhook"):
        programs.start("workers", queue)
    until(lambda: conn.execute(READY).fetchone() == (2,), 60, "both queues are ready")
    bench = _Bench(conn, Path(programs.environment[EFFECTS]), jobs)
    bench.p99()  # warm
    ways = {"alone": bench.p99, "beside stuck jobs": bench.p99_beside_stuck}
    return interleaved(ways, rounds)


class _Bench:
    def __init__(self, conn: Connection, effects: Path, jobs: int) -> None:
        self._conn = conn
        self._jobs = PostgresJobs(conn)
        self._effects = effects
        self._number = jobs

    def p99(self) -> float:
        """Milliseconds."""
        return quantile([self._one() for _ in range(self._number)], 0.99)

    def p99_beside_stuck(self) -> float:
        """Milliseconds, while the other queue is blocked."""
        stuck = [self._enqueue("webhook", 600) for _ in range(STUCK)]
        until(self._blocked, 60, "the other queue is blocked")
        try:
            return self.p99()
        finally:
            for job in stuck:
                PostgresInspector(self._conn).cancel(job)
            until(lambda: not self._count(HELD), 60, "the other queue is free again")

    def _one(self) -> float:
        job = self._enqueue("index", 0)
        committed = time.monotonic()
        begun = until(lambda: self._begun(job), 30, "it began")
        assert begun is not None
        return (begun - committed) * 1000

    def _enqueue(self, queue: str, seconds: float) -> str:
        return self._jobs.enqueue(f"long.{queue}", {"seconds": seconds}, EnqueueOpts())

    def _begun(self, job: str) -> float | None:
        """When it began, from the last lines of the effects log."""
        try:
            lines = self._effects.read_text().splitlines()[-50:]
        except FileNotFoundError:
            return None
        for line in reversed(lines):
            effect = json.loads(line)
            if (effect["job"], effect["what"]) == (job, "begin"):
                return float(effect["at"])
        return None

    def _blocked(self) -> bool:
        return self._count(HELD) >= 8  # its children

    def _count(self, statement: str) -> int:
        row = self._conn.execute(statement).fetchone()
        return int(str(row[0])) if row else 0
