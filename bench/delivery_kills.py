"""SIGKILL at each step of a delivery: nothing lost, the same id each time, never two in flight.

Six steps are failpoints in the handlers, at which children kill themselves, eight at a time; the
seventh is the receiver, which holds the requests of all children until they are killed; at the
eighth the queue process is killed then. Judged is what was lost, and what must not be: a request
under an id that is no event's, two of one endpoint in flight, one that is sent again although the
receiver had not got it or its answer was written.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.support.report import Result, finish
from bench.support.stack import server
from tests.support.databases import Databases
from tests.support.delivery_kills import STEPS, DeliveryKills, Found
from tests.support.processes import Programs


def main(argv: Sequence[str]) -> int:
    """Try; return 1 when anything was lost, sent under another id, or twice at once."""
    parser = argparse.ArgumentParser("script/bench delivery_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="at each step, or some more (50)")
    parser.add_argument("--step", choices=STEPS, action="append", help="this one (all)")
    args = parser.parse_args(argv)
    with server() as databases:
        found = [_tried(databases, step, args.kills) for step in args.step or STEPS]
    wrong = sum(one.lost + sum(one.strange.values()) for one in found)
    return finish(Found._fields, found, Result("delivery_kills", float(wrong), 0, "lower"))


def _tried(databases: Databases, step: str, kills: int) -> Found:
    url = databases.create()
    with tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        programs = Programs(Path(folder), url)
        try:
            with closing(DeliveryKills(programs, url, step)) as tried:
                return tried.run(kills)
        finally:
            programs.close()
            databases.drop(url)
