"""Sound figures: quantiles, and contestants that take turns within one run.

This machine is never quiet and never the same twice, so a figure of one run is compared only with
another figure of the same run: `interleaved` lets contestants take turns, and the medians of
their rounds are compared.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

Measure = Callable[[], float]


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed (nearest rank).

    Args:
        values: at least one, in any order.
        share: above 0, at most 1; 0.99 for p99.

    Raises:
        ValueError: no values, or a share out of range.
    """
    if not values or not 0 < share <= 1:
        raise ValueError(f"expected values and 0 < share <= 1; got {len(values)} and {share}")
    return sorted(values)[math.ceil(share * len(values)) - 1]


def interleaved(contestants: Mapping[str, Measure], rounds: int = 7) -> dict[str, list[float]]:
    """Measure each contestant once a round; who goes first changes from round to round.

    Args:
        contestants: each returns one figure when called.
        rounds: how many; 7 or more for a ratio near 1.

    Returns:
        The figures of each, in order of rounds.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants)
    for _ in range(rounds):
        for name in order:
            taken[name].append(contestants[name]())
        order.append(order.pop(0))
    return taken


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def milliseconds(work: Callable[[], object]) -> float:
    """How long a call takes, in milliseconds."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
