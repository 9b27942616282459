"""A queue process and its child, frozen for longer than a lease: another delivers, what is late is void."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from shared.postgres.inspection.verify import violations
from shared.webhooks.times import LEASE
from tests.support.hooks import LOCAL, Hooks
from tests.support.receivers import OK, Peer, Receiver
from tests.support.waiting import pause, until
from workers.pool.tree import children

READY = "select slot from weirkeeper.process where phase = 'ready' and role = 'queue'"
HEARD_LONG_AGO = (
    "update weirkeeper.process set beat_at = beat_at - interval '60 s' where slot = 'first'"
)
RAN_OUT = "update weirkeeper.endpoint set busy_until = clock_timestamp() - interval '1 s'"
GAVE_BACK = (  # nothing, for it is another's; but it was asked for
    "select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    " and position('set busy_until = null, lease_token = null' in query) > 0"
)
STATE = (
    "select d.state, d.tries, e.lease_token, e.busy_until, e.failures, e.last_success_at"
    " from weirkeeper.delivery d join weirkeeper.endpoint e on e.id = d.endpoint_id order by d.id"
)


class Holding:
    """A receiver's behaviour: holds whichever request it is told to, tells who is there at once."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.twice = 0
        self.let_go = threading.Event()
        self.let_go.set()
        self._open: list[Peer] = []

    def __call__(self, peer: Peer) -> None:
        """Serve one connection."""
        request = peer.request().lower()
        if not request:
            return
        self.twice += any(other.alive() for other in self._open)
        self._open.append(peer)
        self.ids.append(request.partition(b"webhook-id: ")[2].partition(b"\r\n")[0].decode())
        self.let_go.wait(60)
        peer.send(OK)
        self._open.remove(peer)


class Freezing:
    """Two queue processes: the first has one child, stops at failpoints, and is frozen there."""

    def __init__(self, programs, url: str, folder: Path) -> None:
        self._programs = programs
        self.hooks = Hooks(url)
        self._folder = folder
        self.first = None

    def run_into(self, *places: str) -> None:
        """Start the first; it stops at each of these places until it is let go."""
        plan = ";".join(f"{place}=pause:{self._file(place)}" for place in places)
        env = {"WEIRKEEPER_APP": "tests.support.failing_app:app", "TEST_FAILPOINTS": plan}
        self.first = self.start("first", **env, WEIRKEEPER_CHILDREN="webhook=1")

    def start(self, slot: str, **env: str):
        """Start a queue process."""
        arguments = ("webhook", "--slot", slot)
        program = self._programs.start("workers", *arguments, env={**LOCAL, **env})
        until(lambda: {"slot": slot} in self.hooks.rows(READY), 30, f"{slot} is ready")
        return program

    def has_come_to(self, place: str) -> None:
        """Wait until the first's child stands there."""
        file = self._file(place)
        until(file.with_name(f"{file.name}.hit").exists, 30, f"a child has come to {place}")

    def let_go(self, place: str) -> None:
        """Have the first's child go on from there."""
        self._file(place).touch()

    def freeze(self) -> None:
        """Stop the first, its fork server and its child."""
        for pid in self._tree():
            os.kill(pid, signal.SIGSTOP)

    def thaw_child(self) -> None:
        """Have the child alone go on."""
        os.kill(self._tree()[-1], signal.SIGCONT)

    def thaw(self) -> None:
        """Have all of it go on."""
        for pid in self._tree():
            os.kill(pid, signal.SIGCONT)

    def record(self) -> str:
        """An event, on its way to the endpoint."""
        event = self.hooks.event()
        assert self.hooks.fan_out(event) == 1
        return event

    def _tree(self) -> list[int]:
        [server] = children(self.first.pid)
        return [self.first.pid, server, *children(server)]

    def _file(self, place: str) -> Path:
        return self._folder / place


@pytest.fixture
def frozen(programs, database_url, short_tmp):
    made = Freezing(programs, database_url, short_tmp)
    yield made
    if made.first is not None and made.first.running():
        made.thaw()
    made.hooks.close()


def test_a_late_settle_neither_counts_nor_frees_anothers_lease(frozen):
    holding = Holding()
    with Receiver(holding) as receiver:
        endpoint = frozen.hooks.endpoint(url=f"http://127.0.0.1:{receiver.port}/")
        one = frozen.record()
        frozen.run_into("webhook_answered", "webhook_settled")
        frozen.has_come_to("webhook_answered")
        frozen.freeze()
        frozen.hooks.conn.execute(HEARD_LONG_AGO)
        frozen.hooks.conn.execute(RAN_OUT)  # as if it had been frozen for its 20 s
        holding.let_go.clear()
        frozen.start("second")
        until(lambda: holding.ids == [one, one], 30, "the second sends it under its own lease")
        two = frozen.record()
        before = frozen.hooks.rows(STATE)
        frozen.let_go("webhook_answered")
        frozen.thaw_child()
        frozen.has_come_to("webhook_settled")
        assert frozen.hooks.rows(STATE) == before, "what came late was written"
        waiting = frozen.hooks.deliveries.lease(frozen.hooks.delivery(endpoint)["id"], LEASE)
        assert waiting.why == "busy"
        assert holding.ids == [one, one]
        holding.let_go.set()
        until(lambda: holding.ids == [one, one, two], 30, "the next follows")
        frozen.let_go("webhook_settled")
        frozen.thaw()
        delivered = [{"state": "delivered", "tries": 1}] * 2
        until(lambda: outcome(frozen) == delivered, 30, "both are delivered")
    assert holding.twice == 0
    assert violations(frozen.hooks.conn, 86_400.0) == []


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_who_wakes_up_after_the_lease_sends_nothing(frozen):
    holding = Holding()
    with Receiver(holding) as receiver:
        frozen.hooks.endpoint(url=f"http://127.0.0.1:{receiver.port}/")
        one = frozen.record()
        frozen.run_into("webhook_leased")
        frozen.has_come_to("webhook_leased")
        frozen.freeze()
        frozen.let_go("webhook_leased")
        frozen.start("second")
        pause(LEASE - 5, "the lease is the second's reason to wait")
        assert holding.ids == []
        until(lambda: holding.ids == [one], 40, "the second sends it once the lease is over")
        frozen.thaw_child()
        until(lambda: frozen.hooks.rows(GAVE_BACK), 30, "its child gives the lease back")
        frozen.thaw()
        two = frozen.record()
        delivered = [{"state": "delivered", "tries": 1}] * 2
        until(lambda: outcome(frozen) == delivered, 40, "the next goes out, too")
        assert holding.ids == [one, two]
    assert holding.twice == 0
    assert violations(frozen.hooks.conn, 86_400.0) == []


def outcome(frozen: Freezing) -> list[dict]:
    return frozen.hooks.rows("select state, tries from weirkeeper.delivery order by id")
