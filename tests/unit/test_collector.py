"""The collector: areas apart, numbers kept while the database is away, their age told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from metrics.collector import Collector
from shared.errors import DatabaseRefused, DatabaseUnavailable
from shared.stats import Reading
from shared.telemetry.instruments import open_instruments


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime.fromtimestamp(1_000_000 + self.now, UTC)


class Source:
    def __init__(self) -> None:
        self.errors: dict[str, Exception] = {}
        self.value = 1.0
        self.asked: list[str] = []
        self.closed = 0

    def areas(self) -> list[str]:
        return ["queues", "outbox"]

    def read(self, area: str) -> list[Reading]:
        self.asked.append(area)
        if area in self.errors:
            raise self.errors[area]
        return [Reading("jobs", (area, "pending"), self.value)]

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def parts(tmp_path):
    instruments = open_instruments(tmp_path, "metrics")
    source, clock = Source(), Clock()
    yield Collector(source, instruments, pytest.fail, clock), source, clock, instruments
    instruments.close()


def told(collector: Collector) -> dict[tuple[str, str], float]:
    return {(r.name, r.labels[0]): r.value for r in collector.readings()}


def test_every_area_is_read_with_its_moment(parts):
    collector, _, _, _ = parts
    assert collector.age() == float("inf")
    assert collector.collect()
    found = told(collector)
    assert found["jobs", "queues"] == found["jobs", "outbox"] == 1
    assert found["collector_last_success_timestamp_seconds", "queues"] == 1_000_100
    assert collector.age() == 0


def test_numbers_stay_and_age_while_the_database_is_away(parts):
    collector, source, clock, instruments = parts
    collector.collect()
    source.errors = dict.fromkeys(source.areas(), DatabaseUnavailable("away"))
    source.asked.clear()
    clock.now = 160
    assert not collector.collect()
    assert source.asked == ["queues"], "the other areas would wait for it, too"
    assert told(collector)["jobs", "queues"] == 1
    assert told(collector)["collector_last_success_timestamp_seconds", "queues"] == 1_000_100
    assert collector.age() == 60
    assert instruments.db_errors_total.labels("none").get() == 1


def test_one_area_that_fails_leaves_the_others(parts):
    collector, source, clock, _ = parts
    collector.collect()
    refused = DatabaseRefused("canceling statement due to statement timeout")
    source.errors, source.value, clock.now = {"queues": refused}, 2.0, 105
    assert collector.collect()
    assert told(collector)["jobs", "queues"] == 1
    assert told(collector)["jobs", "outbox"] == 2


def test_it_is_a_service(parts):
    collector, source, _, _ = parts
    collector.stop()
    collector.start()
    assert not collector.started()
    assert source.closed == 0
