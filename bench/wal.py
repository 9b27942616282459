"""Bytes of write-ahead log a job, from its enqueue in bulk to its entry in the history.

The difference of pg_current_wal_lsn() on a server where nothing else happens; indexes, vacuum and
the worker's own rows included. Ours keeps a row of history a job, as PgQueuer does; Graphile
Worker deletes what it finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import psycopg

from bench.peers.lineup import OURS, arguments, lineup
from bench.support.contestant import NOOP, Entry, ended
from bench.support.figures import interleaved, median
from bench.support.report import Result, finish

TARGET = 1.25 * 1024  # bytes a job
POSITION = "select pg_current_wal_lsn() - '0/0'::pg_lsn"


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when the target was missed."""
    parser = arguments("wal", __doc__, rounds=5)
    parser.add_argument("--jobs", type=int, default=20_000, help="a round (20000)")
    args = parser.parse_args(argv)
    with lineup(args.alone) as entries:
        taken = interleaved(
            {name: partial(_bytes, entry, args.jobs) for name, entry in entries.items()},
            args.rounds,
        )
    rows = [(name, len(v), min(v), median(v), max(v)) for name, v in taken.items()]
    result = Result("wal", ours=median(taken[OURS]), target=TARGET, better="lower")
    return finish(("bytes a job", "rounds", "lowest", "median", "highest"), rows, result)


def _bytes(entry: Entry, jobs: int) -> float:
    with entry() as contestant, psycopg.connect(contestant.url, autocommit=True) as conn:
        before = _position(conn)
        contestant.load(NOOP, jobs)
        contestant.work(jobs)
        contestant.starts()
        ended(contestant)
        return (_position(conn) - before) / jobs


def _position(conn: psycopg.Connection) -> float:
    row = conn.execute(POSITION).fetchone()
    assert row is not None
    return float(row[0])
