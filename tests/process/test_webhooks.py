"""Webhooks end to end: an event recorded in a transaction reaches a receiver, signed, once."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest

from metrics.files import merged
from shared.postgres.webhooks.deliveries import probe
from shared.webhooks.secret import parse_secret
from shared.webhooks.signing import matches, signed_bytes
from tests.support.hooks import LOCAL, Hooks
from tests.support.mail import MailServer
from tests.support.processes import Programs
from tests.support.receivers import OK, Peer, Receiver, Recording
from tests.support.waiting import until
from workers.pool.tree import children

REFUSED = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"


def head_of(request: bytes) -> dict[str, str]:
    """Headers of a request by lower-case name."""
    lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


class Switched:
    """Answers with whatever it is set to; keeps (id, connections open at once)."""

    def __init__(self) -> None:
        self.answer = OK
        self.refused: set[str] = set()  # once each
        self.held = threading.Event()
        self.held.set()
        self.ids: list[str] = []
        self.answered: list[str] = []
        self.most = 0
        self._open = 0
        self._lock = threading.Lock()

    def __call__(self, peer: Peer) -> None:
        """Serve one connection."""
        with self._lock:
            self._open += 1
            self.most = max(self.most, self._open)
        try:
            request = peer.request()
            if not request:
                return
            name = head_of(request)["webhook-id"]
            self.ids.append(name)
            self.held.wait(30)
            peer.send(REFUSED if name in self.refused else self.answer)
            self.refused.discard(name)
            self.answered.append(name)
        finally:
            with self._lock:
                self._open -= 1


class Site:
    """Relay, webhook queue and a store of endpoints."""

    def __init__(self, programs: Programs, url: str) -> None:
        self.programs = programs
        self.hooks = Hooks(url)

    def start(self, **env: str):
        """Start the relay and the webhook queue."""
        self.programs.start("relay", env=LOCAL)
        queue = self.programs.start("workers", "webhook", env={**LOCAL, **env})
        until(lambda: self.ready() == 2, 30, "relay and queue are ready")
        return queue

    def ready(self) -> int:
        """How many processes are ready."""
        rows = self.hooks.rows("select 1 from weirkeeper.process where phase = 'ready'")
        return len(rows)

    def states(self) -> list[str]:
        """States of all deliveries, oldest event first."""
        rows = self.hooks.rows("select state from weirkeeper.delivery order by event_seq")
        return [row["state"] for row in rows]

    def request_seconds(self) -> float | None:
        """Sum of what requests took, once there is any, as metrics tell it."""
        samples = {
            sample.name.removeprefix("weirkeeper_webhook_request_seconds_"): sample.value
            for family in merged(self.programs.home / "metrics").families
            for sample in family.samples
        }
        return samples["sum"] if samples.get("count") else None

    def until_delivered(self, number: int) -> None:
        """Wait until so many deliveries are there, all delivered."""
        until(
            lambda: self.states() == ["delivered"] * number,
            100,
            f"{number} deliveries are delivered; {self.states()}",
        )


@pytest.fixture
def site(programs, database_url):
    made = Site(programs, database_url)
    yield made
    made.hooks.close()


def test_an_event_arrives_signed_and_once(site):
    received = Recording()
    with Receiver(received) as receiver:
        site.start()
        created = site.hooks.webhooks
        endpoint = site.hooks.endpoint(
            url=f"http://127.0.0.1:{receiver.port}/in?a=b", headers={"X-Team": "blue"}
        )
        new = created.rotate_secret("me", endpoint).secret
        event = site.hooks.event(data={"note": "ä", "n": 2**60})
        site.until_delivered(1)
    [request] = received.requests
    head, body = head_of(request), request.partition(b"\r\n\r\n")[2]
    assert request.startswith(b"POST /in?a=b HTTP/1.1\r\n")
    assert (head["webhook-id"], head["x-team"]) == (event, "blue")
    assert head["content-type"] == "application/json"
    assert json.loads(body)["data"] == {"note": "ä", "n": 2**60}
    message = signed_bytes(event, int(head["webhook-timestamp"]), body)
    given = head["webhook-signature"].split(" ")
    assert len(given) == 2
    assert matches(parse_secret(new), message, given[0])
    [delivery] = site.hooks.webhooks.deliveries("me", endpoint)
    [attempt] = site.hooks.webhooks.attempts("me", delivery.id)
    assert (attempt.status, attempt.body, attempt.trigger) == (200, "ok", "auto")
    assert {"connect", "write", "ttfb"} <= set(attempt.phases)
    seconds = until(site.request_seconds, 10, "its request is counted")
    assert seconds == pytest.approx(sum(attempt.phases.values()) / 1000, abs=0.001)


def test_in_strict_order_one_request_at_a_time_and_no_event_before_an_older_one(site):
    switched = Switched()
    with Receiver(switched) as receiver:
        site.start()
        site.programs.start("workers", "webhook", "--slot", "second", env=LOCAL)
        until(lambda: site.ready() == 3, 30, "a second queue is ready")
        endpoint = site.hooks.endpoint(
            url=f"http://127.0.0.1:{receiver.port}/", ordering="strict", schedule=(1.0, 1.0)
        )
        with (
            site.hooks.conn.transaction()
        ):  # at once, so that fan-outs and deliveries run side by side
            events = [site.hooks.event() for _ in range(300)]
        switched.refused = {events[0], events[150], events[299]}
        site.until_delivered(300)
    assert switched.most == 1
    twice = [[one] * (1 + (one in (events[0], events[150], events[299]))) for one in events]
    assert switched.ids == [name for names in twice for name in names]
    assert site.hooks.webhooks.get("me", endpoint).waiting == 0


def test_a_failure_is_tried_again_on_the_schedule_with_the_same_id(site):
    switched = Switched()
    switched.answer = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
    with Receiver(switched) as receiver:
        site.start()
        endpoint = site.hooks.endpoint(
            url=f"http://127.0.0.1:{receiver.port}/", schedule=(1.0, 1.0)
        )
        event = site.hooks.event()
        until(lambda: len(switched.answered) >= 1, 20, "the first try failed")
        switched.answer = OK
        site.until_delivered(1)
    assert set(switched.ids) == {event}
    [delivery] = site.hooks.webhooks.deliveries("me", endpoint)
    attempts = site.hooks.webhooks.attempts("me", delivery.id)
    assert [attempt.code for attempt in attempts][-1] == "ok"
    assert attempts[0].code == "client_error"
    first, second = attempts[0].finished_at, attempts[1].started_at
    assert second > first


@pytest.mark.parametrize(
    ("head", "code", "body"),
    [
        (b"HTTP/1.1 404 No\r\n", "client_error", "a\0b\ufffd\0"),
        (b"HTTP/1.1 404 N\0o\r\nX-A: b\0c\r\n", "protocol_error", None),
    ],
    ids=["in the body", "in the head"],
)
def test_an_answer_with_nul_in_it_is_a_failure_like_any_other(site, head, code, body):
    """Postgres keeps no NUL in text: its body is kept as bytes, and its head never."""
    switched = Switched()
    switched.answer = head + b"Content-Length: 5\r\n\r\na\0b\xff\0"
    with Receiver(switched) as receiver:
        site.start()
        endpoint = site.hooks.endpoint(
            url=f"http://127.0.0.1:{receiver.port}/", schedule=(1.0, 1.0)
        )
        event = site.hooks.event()
        log = (
            "select a.state, a.outcome from weirkeeper.attempt a"
            " join weirkeeper.delivery d using (job_id)"
        )
        ends = until(lambda: site.hooks.rows(log), 30, "its job's first run is in the log")
    assert ends[0] == {"state": "retryable", "outcome": "failed"}
    assert set(switched.ids) == {event}
    [delivery] = site.hooks.webhooks.deliveries("me", endpoint)
    first = site.hooks.webhooks.attempts("me", delivery.id)[0]
    assert (first.code, first.body) == (code, body)


def test_the_last_failure_gives_up_and_says_so(site):
    switched = Switched()
    switched.answer = (
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"
    )
    with Receiver(switched) as receiver:
        site.start()
        endpoint = site.hooks.endpoint(url=f"http://127.0.0.1:{receiver.port}/", schedule=(1.0,))
        event = site.hooks.event()
        until(lambda: site.states() == ["failed"], 30, "it is given up")
    assert switched.ids == [event, event]
    told = site.hooks.webhooks.explain("me", endpoint, event)
    assert "Given up" in told.sentence
    assert "redirect_not_followed" in told.sentence
    assert told.sentence.endswith("The endpoint has no contact that could be told by mail.")


def test_gone_holds_what_waits_tells_its_contact_and_resuming_sends_it(site):
    switched = Switched()
    switched.answer = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"
    with Receiver(switched) as receiver, MailServer() as mail:
        site.start()
        way = {
            "WEIRKEEPER_SMTP_URL": f"smtp://{mail.at}?tls=none",
            "WEIRKEEPER_MAIL_FROM": "weirkeeper@example.org",
        }
        site.programs.start("workers", "notify", env={**LOCAL, **way})
        endpoint = site.hooks.endpoint(
            url=f"http://127.0.0.1:{receiver.port}/?token=canary", contact="ann@example.org"
        )
        events = [site.hooks.event() for _ in range(3)]

        def disabled():
            return not site.hooks.webhooks.get("me", endpoint).enabled

        until(disabled, 30, "the endpoint is disabled")
        until(lambda: len(site.states()) >= 1, 10, "its deliveries stand")
        held = site.hooks.webhooks.explain("me", endpoint, events[0])
        assert held.sentence.startswith("Held: the endpoint answered that it is gone")
        assert "Its contact, ann@example.org, is told of that" in held.sentence
        [letter] = until(lambda: mail.letters, 30, "its contact is told")
        [told] = site.hooks.rows(
            "select id::text from weirkeeper.event where type = 'webhook.endpoint.disabled'"
        )
        assert letter["message-id"] == f"<{told['id']}@example.org>"
        text = letter.get_body(("plain",)).get_content()
        assert "gone (410)" in text
        assert "canary" not in text
        switched.answer = OK
        site.hooks.webhooks.resume("me", endpoint)
        until(lambda: set(site.states()) == {"delivered"}, 30, "what was held is delivered")
    assert switched.answered[-1] in events


def test_a_probe_of_an_endpoint_that_works_again_has_all_sent_that_is_held(site):
    switched = Switched()
    with Receiver(switched) as receiver:
        site.start()
        endpoint = site.hooks.endpoint(url=f"http://127.0.0.1:{receiver.port}/")
        site.hooks.webhooks.pause("me", endpoint)
        events = [site.hooks.event() for _ in range(3)]
        until(lambda: len(site.states()) == 3, 30, "its deliveries are held")
        site.hooks.conn.execute("update weirkeeper.endpoint set disabled_reason = 'failing'")
        switched.answer = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
        assert probe(site.hooks.conn, 0, 10) == (1, 1)
        until(lambda: len(switched.answered) == 1, 30, "it was probed")
        until(lambda: site.hooks.webhooks.attempts("me", oldest(site)), 30, "it is written down")
        assert not site.hooks.webhooks.get("me", endpoint).enabled
        switched.answer = OK
        site.hooks.conn.execute("update weirkeeper.endpoint set not_before = null")
        assert probe(site.hooks.conn, 0, 10) == (1, 1)
        site.until_delivered(3)
    assert switched.ids[0] == switched.ids[1]
    assert set(switched.ids) == set(events)
    assert switched.most == 1
    told = site.hooks.webhooks.attempts("me", oldest(site))
    assert [(one.trigger, one.result) for one in told] == [
        ("probe", "failed"), ("probe", "delivered"),
    ]  # fmt: skip


def oldest(site):
    [row] = site.hooks.rows("select id::text from weirkeeper.delivery order by job_id limit 1")
    return row["id"]


def test_a_dead_endpoint_costs_the_others_nothing_and_is_claimed_rarely(site):
    dead, well = Switched(), Switched()
    dead.answer = b"HTTP/1.1 503 No\r\nRetry-After: 600\r\nContent-Length: 0\r\n\r\n"
    with Receiver(dead) as broken, Receiver(well) as healthy:
        site.start()
        site.hooks.endpoint(url=f"http://127.0.0.1:{broken.port}/")
        bad = [site.hooks.event() for _ in range(50)]
        until(lambda: len(dead.answered) == 1, 20, "it asked for a pause")
        good = site.hooks.endpoint(owner="you", url=f"http://127.0.0.1:{healthy.port}/")
        events = [site.hooks.event("you") for _ in range(20)]
        until(lambda: len(well.answered) == 20, 40, "the healthy one got all")
        assert len(dead.answered) == 1
        parked = site.hooks.rows("select count(*) as n from weirkeeper.parked")[0]["n"]
    assert sorted(well.ids) == sorted(events)
    assert site.hooks.webhooks.get("you", good).failures == 0
    assert parked >= len(bad) - 5


def test_a_child_killed_in_a_request_loses_nothing_and_sends_the_same_id(site):
    switched = Switched()
    switched.held.clear()
    with Receiver(switched) as receiver:
        queue = site.start(WEIRKEEPER_CHILDREN="webhook=1")
        site.hooks.endpoint(url=f"http://127.0.0.1:{receiver.port}/")
        event = site.hooks.event()
        until(lambda: switched.ids == [event], 20, "the request is under way")
        [server] = children(queue.pid)
        for child in children(server):
            os.kill(child, signal.SIGKILL)
        switched.held.set()
        site.hooks.conn.execute(
            "update weirkeeper.endpoint set busy_until = clock_timestamp() - interval '1 s'"
        )  # as if its 20 s had passed
        site.until_delivered(1)
    assert set(switched.ids) == {event}
    assert switched.most == 1 or len(switched.ids) == 2
