"""What an answer does to a delivery: the next try, the endpoint, and what its job answers."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from shared.app import load_app
from shared.jobs.outcomes import Completed, Discard, Retry, Snooze
from shared.jobs.retry import fate
from shared.webhooks.port import Lease, Settled
from workers.handlers.webhook.verdict import Round, outcome, report
from workers.sideeffects.http.exchange import Exchange

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def lease(attempts=0, schedule=None, age=0.0):
    return Lease(
        delivery_id=1, token=2, event_id="e", event_type="t", body=b"{}", attempts=attempts,
        owner_id="me", trigger="auto", begun_at=NOW - timedelta(seconds=age), endpoint_id="3",
        url="https://h.example.org/", headers={}, format="standard", signature="v1",
        schedule=schedule, strict=False, sealed=[b""], seconds=20.0,
    )  # fmt: skip


def written(exchange, *, discard=False, **fields):
    return report(Round(lease(**fields), "https://h.example.org/", NOW, discard), exchange, NOW)


def answered(exchange, **fields):
    found = written(exchange, **fields)
    return outcome(found, Settled(True, 1, found.disable, None))


@pytest.mark.parametrize(
    ("exchange", "fields", "expected"),
    [
        (Exchange(204), {}, Completed({"sent": True, "status": 204})),
        (Exchange(500), {}, Retry("webhook: server_error, status 500", 30.0)),
        (Exchange(500), {"attempts": 1}, Retry("webhook: server_error, status 500", 300.0)),
        (Exchange(404), {"schedule": (7.0,)}, Retry("webhook: client_error, status 404", 7.0)),
        (
            Exchange(404),
            {"schedule": (7.0,), "attempts": 1},
            Discard("webhook: client_error, status 404"),
        ),
        (Exchange(404), {"discard": True}, Discard("webhook: client_error, status 404")),
        (Exchange(429, retry_after="90"), {}, Snooze(90.0)),
        (Exchange(429, retry_after="soon"), {}, Retry("webhook: overwhelmed, status 429", 30.0)),
        (Exchange(410), {}, Snooze(0)),
        (Exchange(413), {"attempts": 2}, Discard("webhook: too_large, status 413")),
        (Exchange(None, "connect_refused"), {}, Retry("webhook: connect_refused", 30.0)),
        (Exchange(None, "blocked_target"), {"attempts": 2}, Discard("webhook: blocked_target")),
        (Exchange(500), {"attempts": 17}, Discard("webhook: server_error, status 500")),
        (
            Exchange(503, retry_after="60"),
            {"age": 8 * 86_400},
            Discard("webhook: asked_to_wait, status 503"),
        ),
    ],
)
def test_an_answer_decides(exchange, fields, expected):
    assert answered(exchange, **fields) == expected


def test_a_wait_spends_nothing_and_holds_the_endpoint():
    found = written(Exchange(503, retry_after="60"))
    assert (found.result, found.delay, found.pause) == ("deferred", 60.0, 60.0)


def test_gone_holds_the_delivery_and_disables():
    found = written(Exchange(410))
    assert (found.result, found.delay, found.disable) == ("failed", 0.0, "gone")


def test_a_url_that_is_refused_for_good_disables_at_the_third_attempt_and_holds_the_delivery():
    by_url = Exchange(None, "blocked_target", by_url=True)
    found = [written(by_url, attempts=attempts) for attempts in range(3)]
    assert [(one.delay, one.disable) for one in found] == [
        (5.0, None), (300.0, None), (0.0, "blocked"),
    ]  # fmt: skip
    assert answered(by_url, attempts=2) == Snooze(0)
    by_name = written(Exchange(None, "blocked_target"), attempts=2)
    assert (by_name.delay, by_name.disable) == (None, None)


def test_a_lost_lease_leaves_all_to_the_next_try():
    found = written(Exchange(200))
    assert outcome(found, Settled(False, 0, None, None)) == Snooze(1.0)


def test_milliseconds_and_what_was_answered_are_written():
    exchange = Exchange(
        200, times={"dns": 0.0015}, headers=(("server", "x"),), body=b"ok", peer="p"
    )
    found = written(exchange)
    assert (found.phases, found.headers, found.body) == ({"dns": 1.5}, (("server", "x"),), b"ok")
    assert (found.code, found.peer, found.truncated) == ("ok", "p", False)


def test_what_failed_in_one_moment_is_not_tried_again_in_one():
    """5,000 endpoints behind one outage: real verdicts, real rules of retries, real jitter."""
    kind = load_app(None).all_kinds["webhook.deliver"]
    for attempts, delay in ((0, 30.0), (1, 300.0)):
        told = [answered(Exchange(503), attempts=attempts) for _ in range(5_000)]
        starts = [
            fate("failed", attempt=attempts, max_attempts=kind.max_attempts, delay=one.seconds,
                 backoff=kind.backoff).delay
            for one in told
        ]  # fmt: skip
        assert min(starts) >= delay
        spread = max(starts) - min(starts)
        assert round(spread / delay, 2) >= 0.2
        fullest = max(Counter(int(start - delay) for start in starts).values())
        assert fullest <= 2 * len(starts) / spread
