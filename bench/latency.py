"""Milliseconds of one job on an idle system: until its handler starts, until its caller knows.

A job is enqueued, everything falls asleep again, and so on. The clock runs from the moment that
the client knew its commit, until the handler is called; and, where a system lets a caller wait
for a job's end, until the caller was told. Samples of all rounds count; none is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bench.peers.lineup import OURS, arguments, lineup
from bench.support.contestant import PATIENCE, STAMP, Contestant, Entry
from bench.support.figures import quantile
from bench.support.report import Result, finish
from tests.support.waiting import pause, until

PAUSE = 0.15  # seconds in which everything falls asleep again
START_P50, START_P99, SEEN_P99 = 1.5, 5.0, 12.0  # ms, of ours
Samples = list[float]


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when a target was missed."""
    parser = arguments("latency", __doc__, rounds=5)
    parser.add_argument("--jobs", type=int, default=100, help="of each way, a round (100)")
    args = parser.parse_args(argv)
    with lineup(args.alone) as entries:
        taken = latencies(entries, args.rounds, args.jobs)
    starts = {name: both[0] for name, both in taken.items()}
    seen = {name: both[1] for name, both in taken.items() if both[1]}
    rows = [_row(name, "commit → handler start", s) for name, s in starts.items()]
    rows += [_row(name, "commit → caller knows", s) for name, s in seen.items()]
    head = ("who", "ms", "n", "p50", "p95", "p99", "max")
    return finish(head, rows, _result(starts, seen[OURS]))


def latencies(
    entries: Mapping[str, Entry], rounds: int, jobs: int
) -> dict[str, tuple[Samples, Samples]]:
    """Samples of each: until the start, until the caller knows (empty: it cannot wait)."""
    taken: dict[str, tuple[Samples, Samples]] = {name: ([], []) for name in entries}
    order = list(entries)
    for _ in range(rounds):
        for name in order:
            with entries[name]() as contestant:
                contestant.work()
                taken[name][0].extend(until_started(contestant, jobs))
                taken[name][1].extend(until_seen(contestant, jobs))
        order.append(order.pop(0))
    return taken


def until_started(contestant: Contestant, jobs: int) -> Samples:
    """Milliseconds from commit to handler, of one job at a time."""
    before = len(contestant.stamps())
    committed = []
    for number in range(before + 1, before + jobs + 1):
        pause(PAUSE, "everything falls asleep again")
        committed.append(contestant.put(STAMP))
        until(_stamped(contestant, number), PATIENCE, f"job {number} was called")
    began = contestant.stamps()[before:]
    return [(b - c) / 1e6 for b, c in zip(began, committed, strict=True)]


def until_seen(contestant: Contestant, jobs: int) -> Samples:
    """Milliseconds from commit until the caller knows; none when it cannot wait."""
    taken = []
    for _ in range(jobs):
        pause(PAUSE, "everything falls asleep again")
        seen = contestant.wait(STAMP)
        if seen is None:
            return []
        taken.append((seen.completed - seen.committed) / 1e6)
    return taken


def _stamped(contestant: Contestant, number: int) -> Callable[[], bool]:
    return lambda: len(contestant.stamps()) >= number


def _row(name: str, what: str, samples: Samples) -> tuple[object, ...]:
    shares = (quantile(samples, share) for share in (0.5, 0.95, 0.99))
    return (name, what, len(samples), *shares, max(samples))


def _result(starts: Mapping[str, Samples], seen: Samples) -> Result:
    """P50 and p99 against their bounds, p50 against the best rival, p99 of the way back."""
    ours = quantile(starts[OURS], 0.5)
    rivals = [quantile(s, 0.5) for name, s in starts.items() if name != OURS]
    best = min(rivals, default=None)
    return Result(
        "latency", quantile(starts[OURS], 0.99), START_P99, "lower",
        also=(
            Result("latency: start p50", ours, START_P50, "lower"),
            Result("latency: start p50, best rival", ours, 1.0, "lower", best, relative=True),
            Result("latency: caller knows p99", quantile(seen, 0.99), SEEN_P99, "lower"),
        ),
    )  # fmt: skip
