"""Counters, gauges and histograms that are written to one slot's files.

Stands between the instruments and the disk (slotwriter). The files are those of prometheus_client's
multiprocess mode; its own metric classes are not used, because they find their folder in a
process-wide environment variable, which handlers of an application would inherit, and their
value class in a global. An update is one 16-byte store into mapped memory (about 1 µs).

A disk that is full or read-only costs the numbers, never the process: a mapped page without a
block behind it would be SIGBUS, so space is reserved first, and without it values stay in memory.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from math import isinf
from pathlib import Path
from typing import Generic, TypeVar

from shared.telemetry.slotfile import Damaged, entries
from shared.telemetry.slotwriter import SlotWriter, entry_key

log = logging.getLogger(__name__)

MAX_SERIES = 500  # label sets of one family; what comes after is counted under OTHER
OTHER = "other"
RESERVED = {"counter": 1 << 18, "gauge": 1 << 18, "histogram": 1 << 20}  # bytes of one file


class SlotFiles:
    """The three files of one slot: counters, gauges, histograms.

    Args:
        folder: HOME/metrics.
        slot: name of the slot, held by this process.
    """

    def __init__(self, folder: Path, slot: str) -> None:
        self.lock = threading.Lock()
        self._folder = folder
        self._slot = slot
        self._open: dict[str, SlotWriter | None] = {}
        # A gauge tells what is now: those of the slot's former life are over.
        self._path("gauge").unlink(missing_ok=True)

    def _path(self, kind: str) -> Path:
        mode = "_all" if kind == "gauge" else ""
        return self._folder / f"{kind}{mode}_{self._slot}.db"

    def file(self, kind: str) -> SlotWriter | None:
        """The file of one kind of metric; None when it cannot be had. The lock must be held."""
        if kind not in self._open:
            self._open[kind] = _opened(self._path(kind), RESERVED[kind])
        return self._open[kind]

    def close(self) -> None:
        """Close the files; later updates are kept in memory alone."""
        with self.lock:
            for kind, file in self._open.items():
                if file is not None:
                    file.close()
                self._open[kind] = None


def _opened(path: Path, size: int) -> SlotWriter | None:
    """Open a file with its space reserved; one that is damaged begins anew."""
    try:
        _remove_damaged(path)
        return SlotWriter(path, size)
    except OSError as error:
        log.warning("metrics are kept in memory alone: %s: %s", path, error)
        return None


def _remove_damaged(path: Path) -> None:
    try:
        if path.exists() and path.stat().st_size > 0:
            entries(path)
    except Damaged as error:
        log.warning("metrics file %s is damaged and begins anew: %s", path, error)
        path.unlink()


class Value:
    """One number of one series."""

    def __init__(self, files: SlotFiles, kind: str, key: str) -> None:
        self._files = files
        self._kind = kind
        self._key = key
        with files.lock:
            file = files.file(kind)
            self._value = file.read(key) if file is not None else 0.0

    def add(self, amount: float) -> None:
        """Add to the number."""
        with self._files.lock:
            self._write(self._value + amount)

    def set(self, value: float) -> None:
        """Replace the number."""
        with self._files.lock:
            self._write(value)

    def get(self) -> float:
        """The number, as this process knows it."""
        return self._value

    def _write(self, value: float) -> None:
        self._value = value
        file = self._files.file(self._kind)
        if file is not None:
            file.write(self._key, value)


S = TypeVar("S")


class Family(ABC, Generic[S]):
    """A metric with its label sets; a family without labels is its own only series.

    Args:
        files: where the numbers go.
        name: without "weirkeeper_".
        help_text: one line for people.
        labels: names of the labels, each a closed set.
    """

    kind = ""

    def __init__(
        self, files: SlotFiles, name: str, help_text: str, labels: Sequence[str] = ()
    ) -> None:
        self._files = files
        self.name = f"weirkeeper_{name}"
        self.help_text = help_text
        self.label_names = tuple(labels)
        self._series: dict[tuple[str, ...], S] = {}
        self._lock = threading.Lock()
        if not labels and self.kind != "gauge":
            self.labels()  # 0 is a fact; a gauge that nobody set is none

    def labels(self, *values: str) -> S:
        """The series with these label values, in the order of the label names."""
        found = self._series.get(values)
        return found if found is not None else self._add(values)

    def _add(self, values: tuple[str, ...]) -> S:
        if len(values) != len(self.label_names):
            raise ValueError(f"{self.name}: expected labels {self.label_names}; got {values}")
        with self._lock:
            if len(self._series) >= MAX_SERIES:
                values = (OTHER,) * len(values)
            if values not in self._series:
                self._series[values] = self._make(values)
            return self._series[values]

    @abstractmethod
    def _make(self, values: tuple[str, ...]) -> S:
        """A series with these label values."""

    def _value(self, suffix: str, values: tuple[str, ...], bucket: str = "") -> Value:
        names, given = list(self.label_names), list(values)
        if bucket:
            names, given = [*names, "le"], [*given, bucket]
        family = self.name.removesuffix("_total") if self.kind == "counter" else self.name
        key = entry_key(family, family + suffix, names, given, self.help_text)
        return Value(self._files, self.kind, key)


class CounterSeries:
    """One counter: only ever rises."""

    def __init__(self, value: Value) -> None:
        self._value = value

    def inc(self, amount: float = 1) -> None:
        """Add `amount`, 0 or more."""
        if amount < 0:
            raise ValueError(f"a counter never falls; got {amount}")
        self._value.add(amount)

    def get(self) -> float:
        """What was counted, over all lives of the slot."""
        return self._value.get()


class Counter(Family[CounterSeries]):
    """A family of counters."""

    kind = "counter"

    def _make(self, values: tuple[str, ...]) -> CounterSeries:
        return CounterSeries(self._value("_total", values))

    def inc(self, amount: float = 1) -> None:
        """Add to the counter of a family without labels."""
        self.labels().inc(amount)


class GaugeSeries:
    """One gauge: what is so now, in this life of this slot."""

    def __init__(self, value: Value) -> None:
        self.set = value.set
        self.inc = value.add
        self.get = value.get


class Gauge(Family[GaugeSeries]):
    """A family of gauges; the metrics program adds the label `slot`."""

    kind = "gauge"

    def _make(self, values: tuple[str, ...]) -> GaugeSeries:
        return GaugeSeries(self._value("", values))

    def set(self, value: float) -> None:
        """Set the gauge of a family without labels."""
        self.labels().set(value)


def _written(bound: float) -> str:
    """A bound as Prometheus spells it; ours are below a million, where Python does so, too."""
    return "+Inf" if isinf(bound) else repr(float(bound))


class HistogramSeries:
    """One histogram."""

    def __init__(self, total: Value, bounds: Sequence[float], buckets: Sequence[Value]) -> None:
        self._sum = total
        self._bounds = bounds
        self._buckets = buckets

    def observe(self, amount: float, times: int = 1) -> None:
        """Count one observation, or several that are alike."""
        self._sum.add(amount * times)
        self._buckets[bisect_left(self._bounds, amount)].add(times)

    def observe_each(self, amounts: Sequence[float]) -> None:
        """Count many observations."""
        self._sum.add(sum(amounts))
        places = [bisect_left(self._bounds, amount) for amount in amounts]
        for place in set(places):
            self._buckets[place].add(places.count(place))


class Histogram(Family[HistogramSeries]):
    """A family of histograms.

    Args:
        bounds: upper bounds of the buckets, rising; the last one, infinity, is added.
    """

    kind = "histogram"

    def __init__(
        self,
        files: SlotFiles,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        *,
        bounds: Sequence[float],
    ) -> None:
        self._bounds = (*bounds, float("inf"))
        super().__init__(files, name, help_text, labels)

    def _make(self, values: tuple[str, ...]) -> HistogramSeries:
        buckets = [self._value("_bucket", values, _written(b)) for b in self._bounds]
        return HistogramSeries(self._value("_sum", values), self._bounds, buckets)

    def observe(self, amount: float) -> None:
        """Count one observation in a family without labels."""
        self.labels().observe(amount)
