"""Two and three sessions at the same jobs, in every order of their steps.

Whatever the order, each job is in one place or has one last word, each end is told once, each claim
ends once, the log counts on, a key is held by who may hold it, and what was pruned is gone whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.support.job_orders import WHERE, World, acts, casts, claimed, left
from tests.support.orders import Stage, orders


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url)
    yield made
    made.close()


@pytest.fixture
def stage(database_url: str) -> Iterator[Stage]:
    made = Stage(database_url, 3)
    yield made
    made.close()


def play_all(world: World, stage: Stage, where: str, sessions: int) -> int:
    """Every cast in every order; how many were played."""
    return play(world, stage, where, casts(where, sessions))


def play(world: World, stage: Stage, where: str, chosen: Sequence[tuple[str, ...]]) -> int:
    """These casts in every order; how many were played."""
    played = 0
    for names in chosen:
        sessions = len(names)
        for order in orders(sessions):
            if repeats(names, order):
                continue
            jobs = world.begin(where)
            results = stage.play(acts(jobs, names), order)
            try:
                world.check(jobs, left(where, names, results), claimed(names, results))
            except AssertionError as error:
                raise AssertionError(f"{where}: {names} in order {order}: {error}") from error
            played += 1
    return played


def repeats(names: tuple[str, ...], order: tuple[int, ...]) -> bool:
    """Whether sessions that do the same have only changed places: played already."""
    firsts = [order.index(n) for n in range(len(names))]
    return any(
        names[a] == names[b] and firsts[a] > firsts[b] for b in range(len(names)) for a in range(b)
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("where", WHERE)
def test_two_at_once_in_every_order(world: World, stage: Stage, where: str) -> None:
    played = play_all(world, stage, where, 2)
    deeds = len(WHERE[where])
    assert played == 6 * deeds * (deeds - 1) // 2 + 3 * deeds
    assert "40P01" not in stage.ended, "a deadlock"


def test_a_place_is_handed_over_whoever_looks_at_its_key(world: World, stage: Stage) -> None:
    """Who opens a key that has no place free must not hide the jobs that wait for one."""
    looks = [("complete", "cancel", other) for other in ("open the key", "cancel the last")]
    assert play(world, stage, "keyed", looks) == 72


FAULTS = {
    "nobody is told": (
        (
            "create or replace function weirkeeper.tell_final(ids bigint[]) returns integer"
            " language sql as 'select 0'"
        ),
        "running",
    ),
    "a key is kept": (
        (
            "create or replace function weirkeeper.release_unique(ids bigint[], state text default null)"
            " returns bigint language sql as 'select 0::bigint'"
        ),
        "ready",
    ),
    "a second place": (
        (
            "create or replace function weirkeeper.cancel_waiting(ids bigint[]) returns bigint[]"
            " language sql as 'with n as (insert into weirkeeper.attempt (job_id, run, attempt, outcome,"
            " state) select w.job_id, w.run + 1, w.attempt, ''cancelled'', ''cancelled'' from"
            " weirkeeper.ready w where w.job_id = any (ids) returning job_id)"
            " select coalesce(array_agg(job_id), ''{}'') from n'"
        ),
        "ready",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(world: World, stage: Stage, fault: str) -> None:
    """What must hold is really looked at."""
    planted, where = FAULTS[fault]
    world.conn.execute(planted)
    with pytest.raises(AssertionError, match=f"{where}: "):
        play_all(world, stage, where, 2)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("where", WHERE)
def test_three_at_once_in_every_order(world: World, stage: Stage, where: str) -> None:
    assert play_all(world, stage, where, 3) > 500
    assert "40P01" not in stage.ended, "a deadlock"
