"""The test application with periodic jobs; how often they tick, the environment says."""

from __future__ import annotations

import os
from dataclasses import replace

from tests.support.app import app as base
from weirkeeper import Periodic

EVERY = "TEST_EVERY"  # seconds

app = replace(
    base,
    periodics=(
        Periodic("t.often", "t.ok", every=float(os.environ.get(EVERY, "3"))),
        Periodic("t.daily", "t.ok", {"daily": True}, every=86_400),
    ),
)
