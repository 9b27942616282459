"""The relay killed at every point of its pass: nothing lost, nothing doubled, waiters answered."""

from __future__ import annotations

import pytest

from tests.support.relay_kills import POINTS, Killing

THIN, THICK = 10, 300
SEED = 20261130


@pytest.fixture
def killing(programs, database_url, short_tmp, request):
    made = Killing(programs, database_url, short_tmp, SEED + POINTS.index(request.param))
    yield made, request.param
    made.close()


def kill(killing: Killing, point: str, times: int) -> None:
    for _ in range(times):
        killing.kill_at(point)
        if killing.kills % 50 == 0:
            killing.settle()
    killing.settle()
    assert killing.kills == times


@pytest.mark.parametrize("killing", POINTS, indirect=True)
def test_killed_at_each_point(killing):
    kill(*killing, THIN)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(1800)  # some 20 s where nothing else runs
@pytest.mark.parametrize("killing", POINTS, indirect=True)
def test_killed_300_times_at_each_point(killing):
    kill(*killing, THICK)
