"""Every subscription's handler is idempotent: one event delivered twice does its work once.

Goes by the registry, so that a subscription which nobody can drive fails here.
"""

from __future__ import annotations

import pytest

from relay.relay_pass import RelayPass
from relay.tally import Tally
from shared.app import load_app
from shared.events.subscriptions import Subscription
from shared.postgres.driver.connect import Use, connect
from shared.postgres.driver.sessions import ChildSession
from shared.postgres.events.relay import PostgresOutbox
from shared.services.coroutines import Coroutines
from shared.telemetry.instruments import open_instruments
from tests.support.drivers import DRIVERS, without_driver
from workers.handlers.registry import load_handlers
from workers.runner import Runner, Surroundings

APP = load_app(None)
SUBSCRIPTIONS = {s.name: s for s in APP.subscriptions}


@pytest.fixture
def conn(database_url):
    with connect(database_url, "tests", Use.HANDLER) as opened:
        yield opened


@pytest.fixture
def relayed(database_url, tmp_path):
    """What the relay makes of an event: the job of a subscription, as a child gets it."""
    with connect(database_url, "relay") as session:
        instruments = open_instruments(tmp_path, "relay")
        turn = RelayPass(PostgresOutbox(session), Tally(instruments)).turn

        def job(conn, event_id, name):
            while turn().rows:
                pass
            row = conn.execute(
                "select j.id::text, j.args, j.event_id::text, j.owner_id, j.trace, j.timeout_ms,"
                " j.max_attempts from weirkeeper.event_fanout f join weirkeeper.job j"
                " on j.id = (f.jobs ->> %s)::bigint where f.event_id = %s",
                (name, event_id),
            ).fetchone()
            assert row is not None, f"{name} was not given the event that its driver made"
            keys = ("id", "args", "event_id", "owner_id", "trace", "timeout_ms", "max_attempts")
            return {**dict(zip(keys, row, strict=True)), "kind": name, "run": 1, "attempt": 1}

        yield job
        instruments.close()


@pytest.fixture
def run(database_url):
    """As a child runs a job."""
    session = ChildSession(database_url, "child")

    def one(subscription, job):
        handlers = load_handlers(APP, subscription.queue)
        around = Surroundings(session, lambda: False, lambda _n, _of: None, Coroutines())
        outcome = Runner(handlers, (), around)(job)
        assert outcome.outcome == "completed", outcome
        return outcome

    yield one
    if session._conn is not None:
        session._conn.close()


@pytest.mark.parametrize("name", sorted(SUBSCRIPTIONS))
def test_an_event_delivered_twice_does_its_work_once(conn, relayed, run, name):
    assert name in DRIVERS, f"write a driver for {name}: tests/support/drivers.py"
    driver = DRIVERS[name]
    with driver.surroundings():
        twice(name, driver, conn, relayed, run)


def twice(name, driver, conn, relayed, run):
    job = relayed(conn, driver.happen(conn), name)
    before = driver.observe(conn)
    run(SUBSCRIPTIONS[name], job)
    once = driver.observe(conn)
    assert once != before, "nothing of the first delivery can be observed: the driver sees nothing"
    run(SUBSCRIPTIONS[name], {**job, "run": 2, "attempt": 2})
    assert driver.observe(conn) == once, "the second delivery changed something"


def test_every_subscription_has_a_driver():
    assert without_driver(APP.subscriptions) == set()


def test_one_without_a_driver_is_seen():
    planted = Subscription("planted.mail", ("owner.login",), "notify", "planted:mail")
    assert without_driver((*APP.subscriptions, planted)) == {"planted.mail"}
    assert without_driver((), DRIVERS) == set(DRIVERS)
