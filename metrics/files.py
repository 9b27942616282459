"""Merging the slots' files: counters and histograms are summed, gauges are told by slot.

Before it: every process writes its slot's files (shared.telemetry.series). After it: the server
renders families. A damaged file is skipped and counted. Gauges of a slot that no live process
holds are skipped: they tell of a life that is over; its counters stay, so that none ever falls.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

from shared.clock import SYSTEM
from shared.telemetry.slotfile import Damaged, Entry, entries
from shared.telemetry.slots import is_live

KINDS = ("counter", "histogram", "gauge")
AGES = ("weirkeeper_loop_age_seconds",)  # the file holds a moment, its age is told
Labels = tuple[tuple[str, str], ...]

log = logging.getLogger(__name__)


@dataclass
class Merged:
    """What all slots have measured.

    Attributes:
        families: by name, in order.
        damaged: how many files were skipped.
    """

    families: list[Metric] = field(default_factory=list)
    damaged: int = 0


def merged(folder: Path) -> Merged:
    """Read and merge every file of HOME/metrics."""
    found = Merged()
    families: dict[str, _Family] = {}
    for path in sorted(folder.glob("*.db")):
        kind, _, slot = path.stem.partition("_")
        slot = slot.removeprefix("all_") if kind == "gauge" else slot
        if kind not in KINDS or (kind == "gauge" and not is_live(folder, slot)):
            continue
        try:
            for entry in entries(path):
                family = families.setdefault(entry.family, _Family(entry, kind))
                if family.kind == kind:
                    family.add(entry, slot)
        except (Damaged, OSError) as error:
            found.damaged += 1
            log.warning("metrics file skipped: %s: %s", path.name, error)
    found.families = [families[name].metric() for name in sorted(families)]
    return found


class _Family:
    """The numbers of one name over all slots."""

    def __init__(self, first: Entry, kind: str) -> None:
        self.kind = kind
        self._name = first.family
        self._help = first.help_text
        self._values: dict[tuple[str, Labels], float] = defaultdict(float)

    def add(self, entry: Entry, slot: str) -> None:
        """Add one slot's number."""
        labels = tuple(sorted(entry.labels.items()))
        if self.kind == "gauge":
            now = SYSTEM.monotonic()
            value = max(0.0, now - entry.value) if self._name in AGES else entry.value
            self._values[entry.name, (*labels, ("slot", slot))] = value
        else:
            self._values[entry.name, labels] += entry.value

    def metric(self) -> Metric:
        """The family as prometheus_client renders it."""
        metric = Metric(self._name, self._help, self.kind)
        samples = _cumulated(self._values) if self.kind == "histogram" else self._values.items()
        for (name, labels), value in samples:
            metric.add_sample(name, dict(labels), value)
        return metric


def _cumulated(
    values: dict[tuple[str, Labels], float],
) -> Iterable[tuple[tuple[str, Labels], float]]:
    """Buckets as Prometheus wants them: each with all below it, and their count."""
    series: dict[tuple[str, Labels], dict[float, float]] = defaultdict(dict)
    sums: dict[tuple[str, Labels], float] = {}
    for (name, labels), value in values.items():
        le = dict(labels).get("le")
        rest = tuple(pair for pair in labels if pair[0] != "le")
        if le is None:
            sums[name, rest] = value
        else:
            series[name.removesuffix("_bucket"), rest][_bound(le)] = value
    for (name, labels), buckets in series.items():
        yield from _series(name, labels, buckets)
        yield (f"{name}_sum", labels), sums.get((f"{name}_sum", labels), 0.0)


def _series(
    name: str, labels: Labels, buckets: dict[float, float]
) -> Iterator[tuple[tuple[str, Labels], float]]:
    total = 0.0
    for bound, value in sorted(buckets.items()):
        total += value
        yield (f"{name}_bucket", (*labels, ("le", floatToGoString(bound)))), total
    yield (f"{name}_count", labels), total


def _bound(le: str) -> float:
    return inf if le == "+Inf" else float(le)
