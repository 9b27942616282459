"""Delays between tries: the design's numbers, and jitter that only ever adds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import backoff
from shared.backoff import Backoff, jittered, random_token

DAY = 86_400


@pytest.mark.parametrize(
    ("which", "delays"),
    [
        (backoff.DEFAULT, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]),
        (backoff.MAIL, [20, 60, 180, 540, 1_620, 4_860, 14_580, 43_740, 43_740]),
        (backoff.WEBHOOK, [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]),
        (backoff.RECONNECT, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]),
    ],
)
def test_the_numbers_of_the_design(which, delays):
    assert [which.delay(n) for n in range(1, len(delays) + 1)] == pytest.approx(delays)


def test_how_long_until_nothing_is_left():
    # Between the first try and the last of 8 by mail, 18 to a webhook, 10 by default.
    assert sum(backoff.MAIL.delay(n) for n in range(1, 8)) == pytest.approx(6.1 * 3600, rel=0.01)
    assert sum(backoff.WEBHOOK.delay(n) for n in range(1, 18)) / DAY == pytest.approx(5.3, rel=0.01)
    assert sum(backoff.DEFAULT.delay(n) for n in range(1, 10)) == pytest.approx(8.5 * 60, rel=0.01)


@given(
    which=st.builds(
        Backoff,
        base=st.floats(0.001, 1_000),
        factor=st.floats(1, 10),
        cap=st.floats(0.001, 100_000),
    ),
    attempt=st.integers(-5, 10**9),
)
def test_a_delay_never_falls_and_never_passes_its_cap(which, attempt):
    assert 0 < which.delay(attempt) <= which.delay(attempt + 1) <= which.cap


@pytest.mark.parametrize("factor", [1e6, 1e308, 10**6, 10**300])
def test_the_largest_factor_is_capped_at_every_attempt(factor):
    assert Backoff(factor=factor).delay(10_000) == 900
    assert Backoff(base=0, factor=factor).delay(10_000) == 0


@given(seconds=st.floats(0, 1e6))
def test_jitter_adds_up_to_a_fifth(seconds):
    assert seconds <= jittered(seconds) <= seconds * 1.2 + 1e-9


def test_jitter_spreads():
    assert len({jittered(100) for _ in range(50)}) > 40


def test_tokens_fit_a_bigint_and_do_not_repeat():
    tokens = {random_token() for _ in range(1_000)}
    assert len(tokens) == 1_000
    assert all(0 <= token < 2**63 for token in tokens)
