"""What one old transaction costs: a REPEATABLE READ snapshot stays open, no dead row can go.

Two ratios, each paired within a round: the speed of the last third of a full queue against its
first third, all under the snapshot; and the start latency of an idle system over the dead rows of
that queue against a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from bench.latency import until_started
from bench.peers.lineup import OURS, arguments, lineup
from bench.support.contestant import NOOP, Entry, analyse, ended
from bench.support.figures import median
from bench.support.report import Result, finish

LAST_TO_FIRST = 0.90
OVER_DEAD = 1.2


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when a target was missed."""
    parser = arguments("held_snapshot", __doc__, rounds=7)
    parser.add_argument("--jobs", type=int, default=60_000, help="a round (60000)")
    parser.add_argument("--singles", type=int, default=40, help="idle starts, a round (40)")
    args = parser.parse_args(argv)
    speeds: dict[str, list[float]] = {}
    delays: dict[str, list[float]] = {}
    with lineup(args.alone) as entries:
        order = list(entries)
        for _ in range(args.rounds):
            for name in order:
                speed, delay = held(entries[name], args.jobs, args.singles)
                speeds.setdefault(name, []).append(speed)
                delays.setdefault(name, []).append(delay)
            order.append(order.pop(0))
    rows = [_row(name, "speed, last third ÷ first", v) for name, v in speeds.items()]
    rows += [_row(name, "idle start, over dead rows ÷ without", v) for name, v in delays.items()]
    idle = Result("held_snapshot: idle start", median(delays[OURS]), OVER_DEAD, "lower")
    result = Result(
        "held_snapshot", median(speeds[OURS]), LAST_TO_FIRST, "higher", also=(idle,)
    )  # fmt: skip
    return finish(("who", "ratio", "rounds", "lowest", "median", "highest"), rows, result)


def held(entry: Entry, jobs: int, singles: int) -> tuple[float, float]:
    """Both ratios of one contestant: speed last ÷ first, latency over dead rows ÷ without."""
    with entry() as contestant:
        contestant.work()
        without = median(until_started(contestant, singles))
    with entry() as contestant, snapshot(contestant.url):
        contestant.load(NOOP, jobs)
        analyse(contestant.url)
        contestant.work(jobs)
        starts = contestant.starts()
        ended(contestant)
        return last_to_first(starts), median(until_started(contestant, singles)) / without


def last_to_first(starts: Sequence[int]) -> float:
    """Speed of the last third of some starts as a multiple of the first third's."""
    third = len(starts) // 3
    return (starts[third] - starts[0]) / (starts[-1] - starts[-1 - third])


@contextmanager
def snapshot(url: str) -> Iterator[None]:
    """Hold a database's oldest snapshot for the length of a block."""
    with psycopg.connect(url) as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        conn.execute("select count(*) from pg_class")
        yield


def _row(name: str, what: str, ratios: Sequence[float]) -> tuple[object, ...]:
    return name, what, len(ratios), min(ratios), median(ratios), max(ratios)
