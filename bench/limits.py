"""What limits of other kinds cost jobs that have none: a claim of 100, and the write of their ends.

On each database one kind without limits has work, beside another one of the same queue that has
none: one without limits, one with a rate, one whose owners take turns, one whose jobs have a key
(and of which one runs and one is parked for as long as it is measured). All in turns, through the
queue process's own code.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

from bench.support.figures import interleaved, median, milliseconds
from bench.support.report import Result, finish
from bench.support.stack import server
from shared.jobs.work import Completed
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Use, connect
from shared.postgres.queues import completions
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.lines import Lines
from tests.support.databases import Databases
from weirkeeper import App, EnqueueOpts, Kind, Queue, Rate

QUEUE, PLAIN, OTHER = "bench", "plain", "other"
NOTHING = "bench.support.application:noop"
WITHOUT = "no limit"
OTHERS = {
    WITHOUT: Kind(OTHER, QUEUE, NOTHING),
    "a rate": Kind(OTHER, QUEUE, NOTHING, rate=Rate(1000, per=1.0)),
    "turns": Kind(OTHER, QUEUE, NOTHING, fair=True),
    "a key": Kind(OTHER, QUEUE, NOTHING, max_per_key=1),
}
TARGET = 1.1
BATCH = 100
CLAIMS = 20  # of a database in one round
EPOCH = 1
LOAD = "insert into weirkeeper.job (kind) select %s from generate_series(1, %s)"


class Line:
    """Plain jobs beside another kind, and a session that claims and finishes them.

    Args:
        databases: makes the line's own.
        other: the kind beside them.
        jobs: that wait.
    """

    def __init__(self, databases: Databases, other: Kind, jobs: int) -> None:
        url = databases.create()
        kinds = (Kind(PLAIN, QUEUE, NOTHING), other)
        with connect(url, "bench", Use.MIGRATE) as conn:
            declare(conn, App(include_site=False, queues=(Queue(QUEUE),), kinds=kinds))
            PostgresJobs(conn).enqueue_many(OTHER, [{}, {}], EnqueueOpts(concurrency_key="k"))
            Lines(conn, QUEUE, EPOCH + 1).claim([OTHER], 2)
            conn.execute(LOAD, (PLAIN, jobs))
            conn.execute("vacuum analyze")
        self._conn = connect(url, "bench", Use.HOT)
        self._lines = Lines(self._conn, QUEUE, EPOCH)

    def close(self) -> None:
        """End the session."""
        self._conn.close()

    def take(self) -> float:
        """Milliseconds of a claim and the write of its ends: of some, one after the other."""
        return milliseconds(self._some) / CLAIMS

    def _some(self) -> None:
        for _ in range(CLAIMS):
            self._once()

    def _once(self) -> None:
        taken = self._lines.claim([PLAIN, OTHER], BATCH)
        assert len(taken) == BATCH, "the line ran dry"
        completions.complete(self._conn, EPOCH, [Completed(taken, 0.0)])


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when the target was missed."""
    parser = argparse.ArgumentParser("script/bench limits", description=__doc__)
    parser.add_argument("--rounds", type=int, default=11, help=f"of {CLAIMS} claims each (11)")
    args = parser.parse_args(argv)
    jobs = BATCH * CLAIMS * args.rounds
    with server() as databases, ExitStack() as stack:
        measures: dict[str, Callable[[], float]] = {
            name: stack.enter_context(closing(Line(databases, other, jobs))).take
            for name, other in OTHERS.items()
        }
        taken = interleaved(measures, args.rounds)
    rows = [(name, len(v), min(v), median(v), max(v)) for name, v in taken.items()]
    ratios = {
        name: median([a / b for a, b in zip(v, taken[WITHOUT], strict=True)])
        for name, v in taken.items()
        if name != WITHOUT
    }
    first, *also = (
        Result(f"limits: beside {name}", ratio, TARGET, "lower") for name, ratio in ratios.items()
    )
    return finish(
        (f"ms of {BATCH} jobs, beside a kind with", "rounds", "lowest", "median", "highest"),
        rows,
        Result("limits", first.ours, TARGET, "lower", also=tuple(also)),
    )
