"""A relay pass with 100,000 events in line, against one with few: it must not get slower.

Both are passes of 200 events with one subscriber each, from lines of their own; the fastest of some
passes in a row is one figure, since other programs only ever slow them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial

import psycopg

from bench.support.figures import interleaved, median
from bench.support.report import Result, finish
from bench.support.stack import database
from shared.events.outbox import BATCH
from shared.postgres.driver.connect import connect
from shared.postgres.events.relay import PostgresOutbox

TARGET = 1.2  # times the pass with few
FEW, PASSES = 4000, 10
RECORD = (
    "insert into weirkeeper.event (type, subject)"
    " select 'corpus.note.changed', 'wiki://' || i from generate_series(1, %s) i"
)
TABLES = ("event", "event_pending", "event_fanout", "job", "ready")


class Outbox:
    """One relay's session, and a line that is filled anew for each figure."""

    def __init__(self, url: str) -> None:
        self._conn = psycopg.connect(url, autocommit=True)
        self._session = connect(url, "relay")
        self._outbox = PostgresOutbox(self._session)
        self._outbox.next_pass()  # the one plan of the session, made while the line is empty

    def milliseconds(self, waiting: int) -> float:
        """Of a pass while so many events wait."""
        self._conn.execute(f"truncate {', '.join(f'weirkeeper.{t}' for t in TABLES)}")
        self._conn.execute(RECORD, [waiting])
        self._conn.execute("analyze weirkeeper.event_pending")
        self._conn.execute("checkpoint")
        taken = []
        for _ in range(PASSES):
            began = time.perf_counter()
            done = self._outbox.next_pass()
            taken.append((time.perf_counter() - began) * 1000)
            assert done.rows == BATCH, done
        return min(taken)

    def close(self) -> None:
        """End its sessions."""
        self._conn.close()
        self._session.close()


def main(argv: Sequence[str]) -> int:
    """Measure; return 0 when the target was met."""
    parser = argparse.ArgumentParser("script/bench backlog", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="in line (100000)")
    parser.add_argument("--rounds", type=int, default=7, help="of each (7)")
    args = parser.parse_args(argv)
    with database() as url:
        outbox = Outbox(url)
        few, many = f"{FEW:,} in line", f"{args.events:,} in line"
        taken = interleaved(
            {
                few: partial(outbox.milliseconds, FEW),
                many: partial(outbox.milliseconds, args.events),
            },
            args.rounds,
        )
        outbox.close()
    rows = [(name, len(v), min(v), median(v), max(v)) for name, v in taken.items()]
    pairs = [after / before for before, after in zip(taken[few], taken[many], strict=True)]
    print(f"median of the pairs' ratios: {median(pairs):.3f}")
    return finish(
        ("ms a pass", "rounds", "lowest", "median", "highest"),
        rows,
        Result("backlog", ours=median(pairs), target=TARGET, better="lower"),
    )
