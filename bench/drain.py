"""Jobs a second: a full queue of jobs that do nothing, emptied by one process of each.

Jobs lie ready before the worker starts. The clock runs from the first call of a handler until the
database holds no job that has not ended. Ours runs its four children and keeps its history.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench.peers.lineup import GRAPHILE, OURS, PGQUEUER, arguments, lineup
from bench.support.contestant import NOOP, Entry, analyse, ended
from bench.support.figures import interleaved, median
from bench.support.report import Result, finish

TARGETS = {GRAPHILE: 1.3, PGQUEUER: 2.5}
GOAL = 1.5  # × Graphile Worker, printed beside it


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when a target was missed."""
    parser = arguments("drain", __doc__, rounds=7)
    parser.add_argument("--jobs", type=int, default=60_000, help="a round (60000)")
    args = parser.parse_args(argv)
    with lineup(args.alone) as entries:
        taken = interleaved(
            {name: partial(drain, entry, args.jobs) for name, entry in entries.items()},
            args.rounds,
        )
    rows = [(name, len(v), min(v), median(v), max(v)) for name, v in taken.items()]
    medians = {name: median(figures) for name, figures in taken.items()}
    first, second = (
        _judged(f"drain: {name}", medians, name, target) for name, target in TARGETS.items()
    )
    print(f"goal: {GOAL} × {GRAPHILE}")
    return finish(
        ("jobs a second", "rounds", "lowest", "median", "highest"),
        rows,
        Result("drain", first.ours, first.target, "higher", first.rival, True, (second,)),
    )


def drain(entry: Entry, jobs: int, kind: str = NOOP) -> float:
    """Jobs a second of one contestant, from its first job on."""
    with entry() as contestant:
        contestant.load(kind, jobs)
        analyse(contestant.url)
        contestant.work(jobs)
        starts = contestant.starts()
        return jobs / ((ended(contestant) - starts[0]) / 1e9)


def _judged(name: str, medians: dict[str, float], rival: str, target: float) -> Result:
    return Result(name, medians[OURS], target, "higher", medians.get(rival), relative=True)
