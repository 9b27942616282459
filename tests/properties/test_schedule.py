"""Ticks of a schedule: in order, none left out and none doubled, also where clocks are shifted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import ConfigurationError
from shared.jobs.schedule import Schedule

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "UTC")
SHIFTS = (  # nights in which one of these zones shifts its clocks, by an hour or by half of one
    datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC),
    datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC),
    datetime(2026, 4, 5, tzinfo=UTC), datetime(2026, 10, 4, tzinfo=UTC),
    datetime(2026, 9, 6, tzinfo=UTC), datetime(2026, 6, 15, tzinfo=UTC),
)  # fmt: skip
zones = st.sampled_from(ZONES)
moments = st.builds(
    lambda night, seconds: night + timedelta(seconds=seconds),
    st.sampled_from(SHIFTS),
    st.integers(-2 * 86_400, 2 * 86_400),
)
SLOWLY = settings(deadline=None, max_examples=60)  # a walk is many ticks
minutes, hours = st.integers(0, 59), st.integers(0, 23)
fixed = st.builds("{} {} * * *".format, minutes, hours)
flowing = st.one_of(
    st.just("* * * * *"),
    st.builds("*/{} * * * *".format, st.sampled_from((2, 5, 10, 15, 20, 30))),
    st.builds("{} * * * *".format, minutes),
)
anything = st.one_of(
    fixed,
    flowing,
    st.builds("{},{} {}-23 * * *".format, minutes, minutes, st.integers(0, 22)),
    st.builds("{} {} * * {}".format, minutes, hours, st.integers(0, 7)),
)


def walk(schedule: Schedule, begin: datetime, end: datetime) -> list[datetime]:
    """Ticks as a process finds them that looks only once each is due."""
    found = [schedule.next_after(begin)]
    while found[-1] < end:
        found.append(schedule.next_after(found[-1]))
    return found[:-1]


@SLOWLY
@given(anything, zones, moments, st.lists(st.floats(0, 0.999), min_size=1, max_size=5))
def test_whenever_one_looks_the_next_tick_is_the_same(cron, zone, begin, looks):
    """A process that looks late, or between two ticks, goes on where the others do."""
    schedule = Schedule(None, cron, zone)
    ticks = walk(schedule, begin, begin + timedelta(days=3))
    for before, after in pairwise(ticks[:200]):
        assert before < after
        for part in looks:
            assert schedule.next_after(before + (after - before) * part) == after
        assert schedule.corrected(after, before) is None


@SLOWLY
@given(fixed, zones, st.sampled_from(SHIFTS))
def test_a_fixed_time_of_day_ticks_once_on_every_day(cron, zone, night):
    begin = night - timedelta(days=3)
    ticks = walk(Schedule(None, cron, zone), begin, night + timedelta(days=3))
    days = [tick.astimezone(ZoneInfo(zone)).date() for tick in ticks]
    assert len(days) == len(set(days))
    assert all(after - before == timedelta(days=1) for before, after in pairwise(days))


@SLOWLY
@given(flowing, zones, st.sampled_from(SHIFTS))
def test_what_flows_with_time_keeps_its_distance_through_every_shift_of_an_hour(cron, zone, night):
    """Lord Howe shifts by half an hour: a minute of the hour then comes after half or one and a half."""
    begin = night - timedelta(days=1)
    ticks = walk(Schedule(None, cron, zone), begin, night + timedelta(days=2))
    gaps = {after - before for before, after in pairwise(ticks)}
    if zone == "Australia/Lord_Howe":
        assert max(gaps) <= timedelta(minutes=90)
    else:
        assert len(gaps) == 1


@SLOWLY
@given(st.floats(1, 1e6), moments, st.floats(0, 1e7))
def test_an_interval_stays_on_its_grid_and_ahead(every, tick, late):
    now = tick + timedelta(seconds=late)
    following = Schedule(every, None).next_after(now, tick)
    assert now < following <= now + timedelta(seconds=every)
    steps = (following - tick) / timedelta(seconds=every)
    assert steps == pytest.approx(round(steps), abs=1e-3)


@SLOWLY
@given(st.floats(1, 1e6), moments, st.floats(0, 1e7))
def test_an_interval_goes_on_when_the_clock_went_back(every, tick, back):
    now = tick - timedelta(seconds=back)
    schedule = Schedule(every, None)
    right = schedule.corrected(tick, now)
    assert (right is None) == (tick - now <= timedelta(seconds=every))
    assert right is None or right == schedule.next_after(now)


@SLOWLY
@given(anything, zones, moments, st.integers(1, 400))
def test_a_cron_that_is_too_far_ahead_is_put_right(cron, zone, now, days):
    schedule = Schedule(None, cron, zone)
    far = schedule.next_after(now + timedelta(days=days))
    right = schedule.corrected(far, now)
    assert right is None or right == schedule.next_after(now)
    assert schedule.corrected(None, now) == schedule.next_after(now)
    assert schedule.corrected(now - timedelta(days=days), now) is None  # due stays due


def test_in_autumn_a_repeated_time_is_the_first_and_in_spring_a_missing_one_right_after_the_gap():
    schedule = Schedule(None, "30 2 * * *", "Europe/Berlin")
    assert schedule.next_after(datetime(2026, 10, 24, 12, tzinfo=UTC)) == datetime(
        2026, 10, 25, 0, 30, tzinfo=UTC
    )
    between = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10, the second time
    assert schedule.next_after(between) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
    assert schedule.next_after(datetime(2026, 3, 28, 12, tzinfo=UTC)) == datetime(
        2026, 3, 29, 1, 0, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("nickname", "next_one"),
    [
        ("@hourly", datetime(2026, 5, 6, 8, tzinfo=UTC)),
        ("@daily", datetime(2026, 5, 6, 22, tzinfo=UTC)),
        (" @midnight ", datetime(2026, 5, 6, 22, tzinfo=UTC)),
        ("@weekly", datetime(2026, 5, 9, 22, tzinfo=UTC)),
        ("@monthly", datetime(2026, 5, 31, 22, tzinfo=UTC)),
        ("@yearly", datetime(2026, 12, 31, 23, tzinfo=UTC)),
        ("@annually", datetime(2026, 12, 31, 23, tzinfo=UTC)),
    ],
)
def test_nicknames_are_of_the_time_zone(nickname, next_one):
    wednesday = datetime(2026, 5, 6, 7, 30, tzinfo=UTC)
    assert Schedule(None, nickname, "Europe/Berlin").next_after(wednesday) == next_one


@pytest.mark.parametrize(
    ("cron", "said", "ticks"),
    [
        ("0 0 29 2 *", "leap days", ["2028-02-29", "2032-02-29"]),
        ("0 0 L * *", "the last of a month", ["2026-02-28", "2026-03-31"]),
        ("0 0 * feb mon", "names", ["2026-02-02", "2026-02-09"]),
        ("0 0 13 * fri", "either of two days", ["2026-02-06", "2026-02-13", "2026-02-20"]),
        ("0 0 * * 7", "Sunday is 7 too", ["2026-02-01", "2026-02-08"]),
        ("*/25 12 1 * *", "a step begins anew each hour", ["2026-02-01"] * 3 + ["2026-03-01"]),
    ],
)
def test_what_people_write(cron, said, ticks):
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    found = []
    for _ in ticks:
        moment = Schedule(None, cron).next_after(moment)
        found.append(moment.date().isoformat())
    assert found == ticks, said


@pytest.mark.parametrize(
    ("cron", "zone", "said"),
    [
        ("61 * * * *", "UTC", "Bad minute"),
        ("* * * *", "UTC", "neither five fields nor one of @yearly"),
        ("0 * * * * *", "UTC", "neither five fields nor one of @yearly"),
        ("0 0 31 2 *", "UTC", "Bad day-of-month"),
        ("* * * * *", "Mars/Base", "No time zone found"),
        ("* * * * *", "../etc/passwd", "correct it"),
        ("@reboot", "UTC", "neither five fields"),
        ("@DAILY x", "UTC", "neither five fields"),
        ("", "UTC", "neither five fields nor one of @yearly"),
    ],
)
def test_what_cannot_be_read_is_refused(cron, zone, said):
    with pytest.raises(ConfigurationError, match=said):
        Schedule(None, cron, zone).next_after(datetime(2026, 1, 1, tzinfo=UTC))


def test_the_shortest_interval_bounds_a_run():
    now = datetime(2026, 6, 1, tzinfo=UTC)
    assert Schedule(90, None).shortest(now) == 90
    assert Schedule(None, "0,10 4 * * *").shortest(now) == 600
