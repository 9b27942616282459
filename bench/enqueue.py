"""Jobs a second that one client enqueues: one by one, a durable commit each, and in bulk.

Each through its own library. No worker runs. Bulk: Graphile Worker's addJobs and PgQueuer's
lists, 5,000 jobs a call; ours one by one in a single transaction, pipelined, as long as there is
no call for many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from bench.peers.lineup import OURS, arguments, lineup
from bench.support.contestant import NOOP, Contestant, Entry
from bench.support.figures import interleaved, median
from bench.support.report import Result, finish

WARM = 20  # jobs before the clock runs: statements are prepared, files extended
Way = Callable[[Contestant, int], float]


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when a target was missed."""
    parser = arguments("enqueue", __doc__, rounds=7)
    parser.add_argument("--singles", type=int, default=1000, help="one by one, a round (1000)")
    parser.add_argument("--bulk", type=int, default=20_000, help="in bulk, a round (20000)")
    args = parser.parse_args(argv)
    ways: list[tuple[str, Way, int]] = [
        ("one by one", lambda c, n: c.each(NOOP, n), args.singles),
        ("bulk", lambda c, n: c.fill(NOOP, n), args.bulk),
    ]
    rows: list[tuple[object, ...]] = []
    results = []
    with lineup(args.alone) as entries:
        for what, way, jobs in ways:
            taken = interleaved(
                {name: partial(_rate, entry, way, jobs) for name, entry in entries.items()},
                args.rounds,
            )
            rows += [(what, n, len(v), min(v), median(v), max(v)) for n, v in taken.items()]
            results.append(_result(what, {name: median(v) for name, v in taken.items()}))
    one, bulk = results
    return finish(
        ("jobs a second", "who", "rounds", "lowest", "median", "highest"),
        rows,
        Result("enqueue", one.ours, one.target, "higher", one.rival, True, (bulk,)),
    )


def _rate(entry: Entry, way: Way, jobs: int) -> float:
    with entry() as contestant:
        way(contestant, WARM)
        return jobs / way(contestant, jobs)


def _result(what: str, medians: dict[str, float]) -> Result:
    """Ours against the best rival of the run."""
    best = max((v for name, v in medians.items() if name != OURS), default=None)
    return Result(f"enqueue: {what}", medians[OURS], 1.0, "higher", best, relative=True)
