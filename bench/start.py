"""From `weirkeeper server` until every process is ready, and from Ctrl-C until nothing is left.

The first start makes a data folder; the warm ones find it. Nothing else is done in between, so
the stops are those of an idle server (they should take at most 6 s).
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.support.figures import quantile
from bench.support.report import Result, finish
from tests.support.processes import Programs
from tests.support.waiting import until

TARGET = 8.0  # seconds, median of warm starts
PATIENCE = 120.0


def main(argv: Sequence[str]) -> int:
    """Measure; return 0 when the target was met."""
    parser = argparse.ArgumentParser("script/bench start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="warm starts (7)")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        programs = Programs(Path(folder), "")
        try:
            lives = [_life(programs) for _ in range(1 + args.rounds)]
        finally:
            programs.close()
    warm = [ready for ready, _ in lives[1:]]
    rows = [
        _row("first start", [lives[0][0]]),
        _row("warm start", warm),
        _row("idle stop", [stopped for _, stopped in lives]),
    ]
    median = quantile(warm, 0.5)
    result = Result("start", ours=median, target=TARGET, better="lower")
    return finish(("what", "n", "p50 s", "max s"), rows, result)


def _life(programs: Programs) -> tuple[float, float]:
    """One server: seconds until ready, seconds until ended."""
    began = time.perf_counter()
    server = programs.start("weirkeeper.server")

    def greeted() -> bool:
        assert server.running(), server.text()
        return "ready after" in server.text()

    until(greeted, PATIENCE, "the server is ready")
    ready = time.perf_counter()
    server.send(signal.SIGINT)
    assert server.wait(PATIENCE) == 0, server.text()
    return ready - began, time.perf_counter() - ready


def _row(what: str, seconds: Sequence[float]) -> tuple[str, int, float, float]:
    return what, len(seconds), quantile(seconds, 0.5), max(seconds)
