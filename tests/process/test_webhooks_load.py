"""Webhooks under load: secrets that change and a database that restarts meanwhile, and a slow endpoint."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter

import pytest
import standardwebhooks

from bench.support.spent import sample, since
from shared.app import load_app
from shared.postgres.driver.connect import connect
from shared.postgres.queues.catalog import declare
from tests.support.cluster import ThrowawayCluster
from tests.support.databases import Databases
from tests.support.hooks import LOCAL, Hooks
from tests.support.processes import Program, Programs
from tests.support.receivers import OK, Peer, Receiver
from tests.support.waiting import lateness, pause, until

READY = "select 1 from weirkeeper.process where phase = 'ready'"
SLOW = 9.0  # seconds until the slow one answers
MADE = "select count(*) as n from weirkeeper.delivery where owner_id = 'a'"
LEFT = "select count(*) as n from weirkeeper.delivery where state <> 'delivered'"


class Slow:
    """Answers after a while; keeps (moment, headers, body) of every request."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.got: list[tuple[float, dict[str, str], bytes]] = []

    def __call__(self, peer: Peer) -> None:
        """Serve one connection."""
        head, _, body = peer.request().partition(b"\r\n\r\n")
        if not head:
            return
        lines = (line.partition(": ") for line in head.decode().split("\r\n")[1:])
        headers = {name.lower(): value for name, _, value in lines}
        self.got.append((time.monotonic(), headers, body))
        pause(self._seconds, "an answer that takes this long is what is tried")
        peer.send(OK)

    def ids(self) -> list[str]:
        """Events in the order in which they came."""
        return [headers["webhook-id"] for _, headers, _ in self.got]


@pytest.fixture
def other(short_tmp):
    """(a server of its own, programs on it, the URL of a database there)."""
    cluster = ThrowawayCluster()
    databases = Databases(cluster.url)
    url = databases.create()
    databases.close()
    with connect(url, "test") as conn:
        declare(conn, load_app(None))
    programs = Programs(short_tmp, url)
    yield cluster, programs, url
    programs.close()
    cluster.stop()


def started(programs, hooks, **env: str) -> Program:
    """Relay and webhook queue, ready; the latter."""
    programs.start("relay", env=LOCAL)
    queue = programs.start("workers", "webhook", env={**LOCAL, **env})
    until(lambda: len(hooks.rows(READY)) == 2, 60, "relay and queue are ready")
    return queue


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_secrets_change_and_the_database_restarts_under_load_and_each_request_verifies(other):
    cluster, programs, url = other
    hooks = Hooks(url)
    slow = Slow(0.02)
    secrets: list[tuple[float, str]] = []  # (from when on, secret)

    def rotate() -> None:
        secret = hooks.webhooks.rotate_secret("me", one).secret
        secrets.append((time.monotonic(), secret))

    with Receiver(slow) as receiver:
        started(programs, hooks)
        one = hooks.endpoint(url=f"http://127.0.0.1:{receiver.port}/", event_types=("owner.login",))
        rotate()
        hooks.webhooks.update("me", one, {"event_types": ["corpus.*"]})
        with hooks.conn.transaction():
            events = [hooks.event() for _ in range(100)]
        until(lambda: len(slow.got) >= 25, 60, "a quarter of them came")
        rotate()
        until(lambda: len(slow.got) >= 50, 60, "half of them came")
        hooks.close()
        cluster.stop_fast()
        cluster.start()
        hooks = Hooks(url)
        until(lambda: len(slow.got) >= 75, 90, "it goes on")
        rotate()
        until(lambda: not hooks.rows(LEFT)[0]["n"], 90, "all are delivered")
    hooks.close()
    came = Counter(slow.ids())
    assert set(came) == set(events)
    assert came.total() <= len(events) + 8, "more came twice than can have been in flight"
    for moment, headers, body in slow.got:
        live = [secret for since, secret in secrets if since < moment]
        first, newest = live[0], live[-1]
        standardwebhooks.Webhook(first).verify(body, headers)
        if moment - secrets[len(live) - 1][0] > 1.0:  # not begun before the secret was there
            standardwebhooks.Webhook(newest).verify(body, headers)
    assert verifies(secrets[-1][1], slow.got[-1])
    assert not verifies(secrets[-1][1], slow.got[0])


def verifies(secret: str, got: tuple[float, dict[str, str], bytes]) -> bool:
    """Whether a request was signed with it."""
    try:
        standardwebhooks.Webhook(secret).verify(got[2], got[1])
    except standardwebhooks.WebhookVerificationError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_slow_endpoints_backlog_neither_delays_another_nor_costs_attempts_or_cpu(
    programs, database_url
):
    hooks = Hooks(database_url)
    slow, quick = Slow(SLOW), Slow(0.0)
    with Receiver(slow) as a, Receiver(quick) as b, lateness(time.monotonic) as late:
        queue = started(programs, hooks, WEIRKEEPER_CHILDREN="webhook=8")
        hooks.endpoint("a", f"http://127.0.0.1:{a.port}/")
        hooks.endpoint("b", f"http://127.0.0.1:{b.port}/")
        with hooks.conn.transaction():
            backlog = [hooks.event("a") for _ in range(1_000)]
        until(lambda: slow.got, 30, "the backlog is being delivered")
        sent: dict[str, float] = {}
        ticks = threading.Event()
        for _ in range(20):
            moment = time.monotonic()
            sent[hooks.event("b")] = moment
            ticks.wait(1.0)
        until(lambda: len(quick.got) >= len(sent), 30, "the quick one got all")
        until(lambda: hooks.rows(MADE)[0]["n"] == len(backlog), 60, "the whole backlog stands")
        before, reached = sample(hooks.conn, {"queue": queue.pid}), len(slow.got)
        pause(3 * SLOW, "what the backlog costs while it waits")
        spent = since(before, sample(hooks.conn, {"queue": queue.pid}))
        assert len(slow.got) > reached, "the slow one was delivered to all the time"
        reached = len(slow.got)
        order = [backlog.index(event) for event in slow.ids()]
    took = sorted(moment - sent[headers["webhook-id"]] for moment, headers, _ in quick.got)
    tries = hooks.rows(
        "select max(d.tries) as tries, max(a.attempt) as attempts, count(*) as n"
        " from weirkeeper.delivery d left join weirkeeper.attempt a using (job_id)"
        " where d.owner_id = 'a' and d.state = 'pending'"
    )[0]
    runs = hooks.rows(
        "select outcome, count(*) as n from weirkeeper.attempt a join weirkeeper.delivery d"
        " using (job_id) where d.owner_id = 'a' group by 1"
    )
    hooks.close()
    assert took[math.ceil(len(took) * 0.95) - 1] <= 2.0 + 2 * late.worst
    assert len(took) == len(sent), "once each"
    assert sum(spent.values()) < 0.05 * 3 * SLOW, spent  # queue process, children, their sessions
    assert (tries["tries"], tries["attempts"] or 0) == (0, 0)
    assert {row["outcome"] for row in runs} <= {"completed", "snoozed"}
    assert max(order) < reached + 8, "what came first is among the first"
