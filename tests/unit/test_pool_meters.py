"""How long children were busy, and how long all of them, from one count to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from metrics.files import merged
from shared.telemetry.instruments import open_instruments
from shared.telemetry.slots import metrics_folder
from tests.support.works import Clock
from workers.pool.meters import PoolMeters


def test_busy_and_saturated_time(tmp_path: Path) -> None:
    clock, instruments = Clock(), open_instruments(tmp_path, "index")
    meters = PoolMeters(instruments, "index", clock)
    for ready, busy, then in ((4, 0, 5.0), (4, 1, 2.0), (4, 4, 3.0), (3, 3, 0.5), (4, 0, 9.0)):
        meters.children(ready, busy)
        clock.now += then
    meters.children(4, 0)
    found = {
        sample.name: sample.value
        for family in merged(metrics_folder(tmp_path)).families
        for sample in family.samples
    }
    instruments.close()
    assert found["weirkeeper_pool_busy_seconds_total"] == pytest.approx(1 * 2 + 4 * 3 + 3 * 0.5)
    assert found["weirkeeper_pool_saturated_seconds_total"] == pytest.approx(3 + 0.5)
