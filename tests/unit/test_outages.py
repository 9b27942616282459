"""What may be declared of an outage, and what it makes of a run."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shared.backoff import JITTER
from shared.errors import ConfigurationError, DatabaseUnavailable
from shared.jobs.kinds import Kind
from shared.jobs.outages import Outage
from tests.support.works import claim
from workers.pool.slot import End
from workers.verdicts import bare, verdict

AT = datetime(2026, 1, 1, tzinfo=UTC)
AWAY = Outage(("ConnectionError",), delay=60, horizon=3600)


def test_names_and_classes_are_found():
    outage = Outage(
        ("ConnectionError", "shared.errors:DatabaseUnavailable", "socket.timeout", OSError)
    )
    assert outage.load("k") == (ConnectionError, DatabaseUnavailable, TimeoutError, OSError)


@pytest.mark.parametrize(
    "name", ["Nothing", "nowhere.Error", "os.path", "KeyboardInterrupt", "", "."]
)
def test_a_name_without_an_exception_is_refused_where_it_is_loaded(name):
    with pytest.raises(ConfigurationError, match=r"^kind k: outage\.errors: expected names"):
        Outage((name,)).load("k")


@pytest.mark.parametrize(
    "fields",
    [
        {"errors": ["ConnectionError"]},
        {"errors": (KeyboardInterrupt,)},
        {"errors": (3,)},
        {"errors": ("OSError",), "delay": 0},
        {"errors": ("OSError",), "delay": "60"},
        {"errors": ("OSError",), "delay": 60, "horizon": 59},
        {"errors": ("OSError",), "horizon": float("inf")},
        {"errors": ("OSError",), "horizon": True},
    ],
)
def test_what_cannot_work_is_refused(fields):
    with pytest.raises(ConfigurationError, match=r"^outage: "):
        Outage(**fields)


def test_a_kind_refuses_another_thing():
    with pytest.raises(ConfigurationError, match="kind a: outage: expected Outage"):
        Kind("a", "q", "m:f", outage=("OSError",))  # type: ignore[arg-type]


def end(**more):
    return End(1, "snoozed", AT, 0.1, **more)


def test_an_outage_spends_nothing_and_says_what_it_is_beyond_the_horizon():
    told = end(error="ConnectionError: no", delay=60.0, evidence={"stack": "…"})
    put_off = verdict(claim(1, attempt=1, max_attempts=2), told, outage=AWAY)
    assert (put_off.outcome, put_off.state, put_off.cause) == ("snoozed", "retryable", "outage")
    assert (put_off.spent, put_off.horizon) == (False, 3600)
    assert 60 <= put_off.delay <= 60 * (1 + JITTER)
    beyond = put_off.beyond
    assert (beyond.outcome, beyond.state, beyond.spent) == ("failed", "discarded", True)
    assert (
        beyond.error == "ConnectionError: no (away for longer than the 3600 s that tries are free)"
    )
    assert bare(put_off).beyond.evidence is None


def test_a_snooze_of_the_handlers_own_is_none():
    done = verdict(claim(1), end(delay=3.0), outage=AWAY)
    assert (done.cause, done.delay, done.horizon) == (None, 3.0, None)
