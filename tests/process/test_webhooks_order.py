"""Strict order end to end: relays and queues side by side, receivers that fail, and what is sent once more."""

from __future__ import annotations

import threading
import time

import pytest

from shared.postgres.driver.connect import connect
from shared.postgres.events.recorder import PostgresRecorder
from tests.support.hooks import LOCAL, Hooks
from tests.support.receivers import OK, Peer, Receiver
from tests.support.waiting import until

READY = "select 1 from weirkeeper.process where phase = 'ready'"
STATES = "select state, count(*) as n from weirkeeper.delivery group by state"
REFUSED = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"


class Picky:
    """Refuses a request now and then; keeps the ids that it took, and how many came at once."""

    def __init__(self, every: int) -> None:
        self._every = every
        self.taken: list[str] = []
        self.came = self.most = self._open = 0
        self._lock = threading.Lock()

    def __call__(self, peer: Peer) -> None:
        """Serve one connection."""
        with self._lock:
            self._open += 1
            self.most = max(self.most, self._open)
            self.came += 1
            refuses = self.came % self._every == 0
        head = peer.request().partition(b"\r\n\r\n")[0].lower()
        name = head.partition(b"webhook-id: ")[2].partition(b"\r\n")[0].decode()
        if name and not refuses:
            self.taken.append(name)
        with self._lock:
            self._open -= 1  # before the answer: the next one may come at once
        peer.send(REFUSED if refuses else OK)


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


def started(programs, hooks) -> None:
    """Two relays and two webhook queues, ready."""
    for number in (1, 2):
        programs.start("relay", "--slot", f"relay-{number}", env=LOCAL)
        programs.start("workers", "webhook", "--slot", f"webhook-{number}", env=LOCAL)
    until(lambda: len(hooks.rows(READY)) == 4, 60, "relays and queues are ready")


def recorded(url: str, number: int, found: list[tuple[float, float, str]]) -> None:
    """Record events one after the other: (begun, committed, id) of each."""
    with connect(url, "recorder") as conn:
        recorder = PostgresRecorder(conn)
        for _ in range(number):
            begun = time.monotonic()
            event = recorder.record("corpus.note.changed", owner_id="me", subject="wiki://a")
            found.append((begun, time.monotonic(), event))


@pytest.mark.slow
def test_what_was_committed_before_another_was_recorded_arrives_before_it(
    programs, database_url, hooks
):
    picky = Picky(40)
    with Receiver(picky) as receiver:
        started(programs, hooks)
        url = f"http://127.0.0.1:{receiver.port}/"
        hooks.endpoint(url=url, ordering="strict", schedule=(1.0,) * 30)
        found: list[tuple[float, float, str]] = []
        writers = [
            threading.Thread(target=recorded, args=(database_url, 50, found)) for _ in range(4)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(60)
        delivered = [{"state": "delivered", "n": 200}]
        until(lambda: hooks.rows(STATES) == delivered, 100, "all are delivered")
    assert sorted(picky.taken) == sorted(event for _, _, event in found), "once each"
    assert picky.most == 1
    place = {event: n for n, event in enumerate(picky.taken)}
    wrong = [
        (one, other)
        for _, committed, one in found
        for begun, _, other in found
        if committed < begun and place[one] > place[other]
    ]
    assert wrong == []


def test_what_is_sent_again_comes_behind_what_waits_as_it_was_asked_for(programs, hooks):
    picky = Picky(7)
    with Receiver(picky) as receiver:
        started(programs, hooks)
        url = f"http://127.0.0.1:{receiver.port}/"
        one = hooks.endpoint(url=url, ordering="strict", schedule=(1.0,) * 30)

        def waits(number: int) -> None:
            until(lambda: hooks.webhooks.get("me", one).waiting == number, 60, f"{number} wait")

        first = [hooks.event() for _ in range(5)]
        until(lambda: picky.taken == first, 60, f"they come in order; {picky.taken}")
        waits(0)
        hooks.webhooks.pause("me", one)
        before = [hooks.event() for _ in range(8)]
        waits(8)
        again = [first[3], first[0], first[4]]
        for event in again:
            assert len(hooks.webhooks.redeliver("me", event_id=event)) == 1
        after = [hooks.event() for _ in range(8)]
        waits(19)
        hooks.webhooks.resume("me", one)
        waits(0)
    assert picky.taken == [*first, *before, *again, *after]
    assert picky.most == 1
