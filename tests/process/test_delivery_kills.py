"""SIGKILL at each step of a delivery, a few times; `script/bench delivery_kills` does it 50 times."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.support.delivery_kills import STEPS, DeliveryKills


@pytest.mark.slow
@pytest.mark.timeout(150)
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step(programs, database_url, step):
    with closing(DeliveryKills(programs, database_url, step)) as tried:
        found = tried.run(4)
    assert found.deaths >= 4
    assert (found.lost, found.strange) == (0, {})
