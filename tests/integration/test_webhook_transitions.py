"""Every state of a delivery against everything that may happen to it: what it becomes, or that it stays."""

from __future__ import annotations

import pytest

from shared.postgres.queues import controls
from shared.webhooks.port import Lease
from shared.webhooks.times import LEASE
from tests.support.hooks import Hooks, answered

FAILED = {"result": "failed", "code": "server_error", "status": 500}

# By event: what a delivery that is pending, delivered, failed, cancelled, or sent again becomes.
# A settle here is one under a lease that was granted while the delivery was pending, and is the endpoint's
# still: its request was under way.
STATES = ("pending", "delivered", "failed", "cancelled")
TABLE = {
    "leased": ("pending", "delivered", "failed", "cancelled"),
    "given back": ("pending", "delivered", "failed", "cancelled"),
    "success": ("delivered", "delivered", "failed", "cancelled"),
    "failure with a next try": ("pending", "delivered", "failed", "cancelled"),
    "last failure": ("failed", "delivered", "failed", "cancelled"),
    "asked to wait": ("pending", "delivered", "failed", "cancelled"),
    "late success": ("pending", "delivered", "failed", "cancelled"),
    "late last failure": ("pending", "delivered", "failed", "cancelled"),
    "fanned out again": ("pending", "delivered", "failed", "cancelled"),
    "sent again by hand": ("pending", "pending", "pending", "pending"),
    "its job cancelled": ("cancelled", "delivered", "failed", "cancelled"),
    "endpoint paused": ("pending", "delivered", "failed", "cancelled"),
    "endpoint resumed": ("pending", "delivered", "failed", "cancelled"),
}


class Delivery:
    """One delivery, brought into a state."""

    def __init__(self, hooks: Hooks, owner: str, state: str) -> None:
        self.hooks, self.owner = hooks, owner
        self.endpoint = hooks.endpoint(owner)
        self.event = hooks.event(owner)
        hooks.fan_out(self.event)
        self.id = hooks.delivery(self.endpoint)["id"]
        if state == "cancelled":
            self.cancel()
        elif state != "pending":
            report = answered() if state == "delivered" else answered(**FAILED)
            hooks.deliveries.settle(hooks.leased(self.id), report)
        assert self.state() == state

    def state(self) -> str:
        """Its state as it stands."""
        return self.hooks.delivery(self.endpoint)["state"]

    def cancel(self) -> None:
        """Cancel its job, and have the deliveries of jobs that ended end."""
        controls.cancel(self.hooks.conn, [self.hooks.delivery(self.endpoint)["job_id"]])
        self.hooks.end_lost()

    def lease(self) -> Lease | None:
        """Its lease; None = it is refused."""
        granted = self.hooks.deliveries.lease(self.id, LEASE)
        return granted if isinstance(granted, Lease) else None

    def befall(self, what: str) -> None:
        """Have one of the events of the table happen."""
        reports = {
            "success": answered(), "failure with a next try": answered(**FAILED, delay=60.0),
            "last failure": answered(**FAILED),
            "asked to wait": answered(result="deferred", code="asked_to_wait", delay=9.0, pause=9.0),
        }  # fmt: skip
        lease = self.lease()
        assert (lease is not None) == (self.state() == "pending")
        webhooks, deliveries = self.hooks.webhooks, self.hooks.deliveries
        if what.removeprefix("late ") in reports and lease is not None:
            if what.startswith("late "):
                self.hooks.conn.execute("update weirkeeper.endpoint set busy_until = now()"
                                        " - interval '1 s' where id = %s", (self.endpoint,))  # fmt: skip
                assert self.lease() is not None
            held = deliveries.settle(lease, reports[what.removeprefix("late ")]).held
            assert held == (not what.startswith("late "))
        elif what == "given back" and lease is not None:
            deliveries.release(lease)
        elif what == "fanned out again":
            assert self.hooks.fan_out(self.event) == 0
        elif what == "sent again by hand":
            webhooks.redeliver(self.owner, delivery_id=str(self.id))
        elif what == "its job cancelled":
            self.cancel()
        elif what.startswith("endpoint "):
            webhooks.pause(self.owner, self.endpoint)
            if what == "endpoint resumed":
                webhooks.resume(self.owner, self.endpoint)


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


def test_what_may_become_of_a_delivery(hooks):
    seen = {}
    for what in TABLE:
        seen[what] = ()
        for state in STATES:
            one = Delivery(hooks, f"{what} {state}", state)
            one.befall(what)
            seen[what] += (one.state(),)
    assert seen == TABLE


@pytest.mark.parametrize("report", [{}, {**FAILED, "delay": 60.0}, FAILED], ids=str)
def test_what_was_cancelled_under_a_request_stays_ended(hooks, report):
    one = Delivery(hooks, "me", "pending")
    lease = one.lease()
    one.cancel()
    assert one.state() == "cancelled"
    hooks.deliveries.settle(lease, answered(**report))
    assert one.state() == ("cancelled" if report else "delivered")
    assert len(hooks.webhooks.attempts("me", str(one.id))) == 1, "it was sent, and that is told"
    assert hooks.webhooks.redeliver("me", delivery_id=str(one.id)) == [str(one.id)]
    assert one.lease() is not None, "its lease was given back"
