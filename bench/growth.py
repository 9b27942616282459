"""What a long line costs: a claim of 100 jobs with a million ready, against ten thousand.

Two databases on one server, claims in turns, each through the queue process's own code. The
claimed jobs are finished between the claims, off the clock.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack, closing

from bench.support.application import QUEUE
from bench.support.contestant import NOOP
from bench.support.figures import interleaved, median, milliseconds
from bench.support.ours import APP, LOAD
from bench.support.report import Result, finish
from bench.support.stack import server
from shared.app import load_app
from shared.jobs.work import Claim, Finish
from shared.postgres.driver.connect import Use, connect
from shared.postgres.queues import completions
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.claims import Claims
from tests.support.databases import Databases

TARGET = 1.2
BATCH = 100
CLAIMS = 8  # of a line in one round; their median is its figure
EPOCH = 1


class Line:
    """So many ready jobs, and a session that claims them.

    Args:
        databases: makes the line's own.
        jobs: that wait at first.
    """

    def __init__(self, databases: Databases, jobs: int) -> None:
        url = databases.create()
        with connect(url, "bench", Use.MIGRATE) as conn:
            declare(conn, load_app(APP))
            conn.execute(LOAD, (NOOP, jobs))
            conn.execute("vacuum analyze")
        self._conn = connect(url, "bench", Use.HOT)
        self._claims = Claims(self._conn, QUEUE, EPOCH)

    def close(self) -> None:
        """End the session."""
        self._conn.close()

    def claim(self) -> float:
        """Milliseconds of a claim, the median of some."""
        return median([self._once() for _ in range(CLAIMS)])

    def _once(self) -> float:
        taken: list[Claim] = []
        spent = milliseconds(lambda: taken.extend(self._claims.claim([NOOP], BATCH)))
        assert len(taken) == BATCH, "the line ran dry"
        completions.finish(self._conn, EPOCH, [Finish(c.job_id, c.token) for c in taken])
        return spent


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when the target was missed."""
    parser = argparse.ArgumentParser("script/bench growth", description=__doc__)
    parser.add_argument("--many", type=int, default=1_000_000, help="ready jobs (1000000)")
    parser.add_argument("--few", type=int, default=10_000, help="ready jobs (10000)")
    parser.add_argument("--rounds", type=int, default=9, help=f"of {CLAIMS} claims each (9)")
    args = parser.parse_args(argv)
    with server() as databases, ExitStack() as stack:
        lines = {n: stack.enter_context(closing(Line(databases, n))) for n in (args.many, args.few)}
        taken = interleaved({f"{n:,} ready": line.claim for n, line in lines.items()}, args.rounds)
    rows = [(name, len(v), min(v), median(v), max(v)) for name, v in taken.items()]
    many, few = taken.values()
    ratio = median([m / f for m, f in zip(many, few, strict=True)])
    print(f"pairs, median: {ratio:.2f}")
    return finish(
        (f"ms a claim of {BATCH}", "rounds", "lowest", "median", "highest"),
        rows,
        Result("growth", ours=ratio, target=TARGET, better="lower"),
    )
