"""How late a handler that cannot be stopped is gone, and whether its siblings notice.

The handler sits in C code with every signal masked and the interpreter's lock held. Its child must
be gone at timeout + grace + 250 ms, and three jobs beside it must end on their first attempt.
Clocks: the handler's own first line, and the moment at which its process id is gone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.support.figures import quantile
from bench.support.report import Result, finish
from bench.support.stack import database
from tests.support.processes import Programs
from tests.support.queue import TestQueue, alive
from tests.support.waiting import until

TIMEOUT, GRACE = 0.5, 2.0  # seconds: the kind's (tests/support/app.py) and the process's
LATE = 250.0  # ms
SIBLINGS = 3


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when a target was missed."""
    parser = argparse.ArgumentParser("script/bench timeouts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="handlers that are stuck (20)")
    args = parser.parse_args(argv)
    with database() as url, tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        programs = Programs(Path(folder), url)
        queue = TestQueue(programs, url)
        try:
            queue.start(WEIRKEEPER_GRACE_SECONDS=str(GRACE))
            rounds = [_round(queue) for _ in range(args.rounds)]
        finally:
            programs.close()
            queue.conn.close()
    late = [ms for ms, _ in rounds]
    touched = sum(number for _, number in rounds)
    rows = [
        ("after timeout + grace, ms", len(late), quantile(late, 0.5), max(late)),
        ("siblings not on attempt 1", SIBLINGS * len(rounds), float(touched), float(touched)),
    ]
    also = (Result("timeouts: siblings touched", touched, 0, "lower"),)
    result = Result("timeouts", max(late), LATE, "lower", also=also)
    return finish(("what", "n", "p50", "max"), rows, result)


def _round(queue: TestQueue) -> tuple[float, int]:
    """Milliseconds that one was late, and how many of its siblings needed another attempt."""
    siblings = [queue.enqueue("sleep", {"seconds": 2}) for _ in range(SIBLINGS)]
    stuck = queue.begun(queue.enqueue("stuck"), timeout=30)
    until(lambda: not alive(stuck["pid"]), 60, "the stuck child is gone")
    late = time.monotonic() - stuck["at"] - TIMEOUT - GRACE
    ended = [queue.final(job, timeout=60) for job in siblings]
    return late * 1000, sum(last["attempt"] != 1 for last in ended)
