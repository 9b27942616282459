"""Found through PYTHONPATH by a program of a test: its wall clock is off by so many seconds.

shared.clock is the one place that reads a clock (a gate says so), so this reaches all of it.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import shared.clock

SHIFT = timedelta(seconds=float(os.environ["TEST_CLOCK_SHIFT"]))

shared.clock.SystemClock.wall = lambda _self: datetime.now(UTC) + SHIFT  # type: ignore[method-assign]
