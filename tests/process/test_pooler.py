"""A pooler in between: one that breaks LISTEN is refused with a clear message, another does no harm."""

from __future__ import annotations

import psycopg
import pytest

from shared.errors import ConfigurationError
from shared.postgres.driver.connect import connect
from shared.postgres.driver.probe import require_direct
from shared.postgres.schema.boot import wait_for_database
from shared.services.stop import StopSignal
from tests.support.pooler import Pooler
from tests.support.waiting import until


@pytest.fixture(params=[True, False], ids=["transaction", "session"])
def pooler(database_url, request):
    made = Pooler(database_url, transaction=request.param)
    yield made, request.param
    made.close()


def test_the_pooler_of_this_test_pools(pooler):
    """In transaction mode two statements of one client come to two sessions, and notices to none."""
    made, transaction = pooler
    with (
        psycopg.connect(made.url, autocommit=True) as one,
        psycopg.connect(made.url, autocommit=True) as other,
    ):
        seen = {one.execute("select pg_backend_pid()").fetchone()[0] for _ in range(4)}
        assert (len(seen) > 1) is transaction
        with one.transaction():
            inside = {one.execute("select pg_backend_pid()").fetchone()[0] for _ in range(4)}
        assert len(inside) == 1
        one.execute("listen x")
        other.execute("select pg_notify('x', 'y')")
        heard = [n.payload for n in one.notifies(timeout=0.5, stop_after=1)]
        assert heard == ([] if transaction else ["y"])


def test_a_direct_connection_costs_no_probe(database_url, monkeypatch):
    monkeypatch.setattr("shared.postgres.driver.probe._hears", lambda *_: pytest.fail("it probed"))
    with connect(database_url, "test") as conn:
        require_direct(conn, database_url, "test")


def test_what_breaks_listen_is_refused_and_the_rest_is_not(pooler):
    made, transaction = pooler
    with connect(made.url, "test") as conn:
        if not transaction:
            require_direct(conn, made.url, "test")
            return
        with pytest.raises(ConfigurationError, match="expected a direct connection; got one thr"):
            require_direct(conn, made.url, "test")


def test_who_refuses_a_pooler_leaves_no_settings_in_its_sessions(database_url):
    made = Pooler(database_url, transaction=True)
    shown = "select current_setting('statement_timeout'), current_setting('lock_timeout')"
    with psycopg.connect(made.url, autocommit=True, prepare_threshold=None) as application:
        before = application.execute(shown).fetchone()
        with pytest.raises(ConfigurationError, match="expected a direct connection"):
            wait_for_database(made.url, "test", StopSignal())
        assert {application.execute(shown).fetchone() for _ in range(9)} == {before}
    made.close()


def test_a_relay_behind_it_says_so_and_ends_or_works(programs, database_url, pooler):
    made, transaction = pooler
    program = programs.start("relay", env={"DATABASE_URL": made.url})
    if transaction:
        assert program.wait(30) == 78
        assert "set WEIRKEEPER_DIRECT_URL to the database itself" in program.text()
        return
    with psycopg.connect(database_url, autocommit=True) as conn:
        ready = "select 1 from weirkeeper.process where phase = 'ready'"
        until(lambda: conn.execute(ready).fetchone(), 20, "the relay is ready")
    assert program.terminate() == 0


def test_with_a_direct_url_beside_it_the_relay_works(programs, database_url):
    made = Pooler(database_url, transaction=True)
    program = programs.start(
        "relay", env={"DATABASE_URL": made.url, "WEIRKEEPER_DIRECT_URL": database_url}
    )
    with psycopg.connect(made.url, autocommit=True, prepare_threshold=None) as conn:
        event = conn.execute("select weirkeeper.record_event('corpus.note.changed')").fetchone()[0]
        fanned = "select 1 from weirkeeper.event_fanout where event_id = %s"
        until(lambda: conn.execute(fanned, [event]).fetchone(), 20, "the event is fanned out")
    assert program.terminate() == 0
    made.close()
