"""Jobs a second of a queue of four children, when each job waits for a millisecond.

Jobs lie ready before the process starts. The clock runs from the first call of a handler until the
database holds no job that has not ended. Beside it, in turns, as many processes that do nothing but
such waits: what the machine leaves possible, which is less than 4,000.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from bench.drain import drain
from bench.support.application import CHILDREN
from bench.support.bare_naps import bare_naps
from bench.support.contestant import NAP
from bench.support.figures import interleaved, median
from bench.support.ours import ours
from bench.support.report import Result, finish
from bench.support.stack import server

TARGET = 3000  # jobs a second


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when the target was missed."""
    parser = argparse.ArgumentParser("script/bench sleeps", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of both (5)")
    parser.add_argument("--jobs", type=int, default=12_000, help="a round (12000)")
    parser.add_argument("--seconds", type=float, default=2, help="of the bare waits a round (2)")
    args = parser.parse_args(argv)
    with server() as databases:
        taken = interleaved(
            {
                "jobs": lambda: drain(partial(ours, databases), args.jobs, NAP),
                "bare waits": lambda: bare_naps(CHILDREN, args.seconds),
            },
            args.rounds,
        )
    rows = [(name, len(v), min(v), median(v), max(v)) for name, v in taken.items()]
    jobs, bare = median(taken["jobs"]), median(taken["bare waits"])
    print(f"of what bare waits leave: {jobs / bare:.2f}")
    result = Result("sleeps", ours=jobs, target=TARGET, better="higher")
    return finish(("a second", "rounds", "lowest", "median", "highest"), rows, result)
