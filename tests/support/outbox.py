"""An outbox to relay: an application with subscribers of each sort, and one relay in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from relay.relay_pass import RelayPass
from relay.tally import Tally
from shared.app import App
from shared.backoff import Backoff
from shared.events.subscriptions import Subscription
from shared.events.type import EventType
from shared.postgres.driver.connect import connect
from shared.postgres.events.relay import PostgresOutbox
from shared.postgres.queues.catalog import declare
from shared.telemetry.instruments import Instruments, open_instruments

AT_ONCE = Backoff(base=0.0)
HANDLER = "nowhere:handle"
APP = App(
    event_types=(
        EventType("order.paid", "An order was paid.", "order/<id>", exposure="webhook"),
        EventType("order.line.added", "A line was added.", "order/<id>"),
        EventType("quiet", "Nobody wants to know.", "nothing"),
    ),
    subscriptions=(
        Subscription("ship", types=("order.paid",), queue="fetch", handler=HANDLER),
        Subscription("audit", types=("order.*",), queue="maintenance", handler=HANDLER),
        Subscription(
            "total",
            types=("order.paid", "order.line.*"),
            queue="index",
            handler=HANDLER,
            coalesce=True,
            max_attempts=3,
            timeout=7.5,
        ),
    ),
)


def refuse_jobs(conn: psycopg.Connection[Any], subject: str) -> None:
    """Make the fan-out of every event of a subject fail, until the trigger `refuse` is dropped."""
    conn.execute(
        "create or replace function refuse() returns trigger language plpgsql as $$"
        " begin if new.args->>'subject' = tg_argv[0] then"
        " raise exception 'no job for %', new.args->>'subject'; end if; return new; end $$"
    )
    conn.execute(
        "create trigger refuse before insert on weirkeeper.job"
        f" for each row execute function refuse('{subject}')"
    )


class Desk:
    """A database with that application, and one relay that is turned by hand.

    Args:
        url: of a migrated database.
        home: where instruments are kept.
    """

    def __init__(self, url: str, home: Path) -> None:
        self.url = url
        self.conn = psycopg.connect(url, autocommit=True, row_factory=dict_row)
        with connect(url, "tests") as session:
            declare(session, APP)
        self.session = connect(url, "relay")
        self.outbox = PostgresOutbox(self.session)
        self.instruments: Instruments = open_instruments(home, "relay")
        self.relay = RelayPass(self.outbox, Tally(self.instruments), AT_ONCE)

    def close(self) -> None:
        """End the sessions."""
        self.conn.close()
        self.session.close()
        self.instruments.close()

    def another(self) -> RelayPass:
        """A second relay, with a session of its own; `close` does not end it."""
        outbox = PostgresOutbox(connect(self.url, "relay"))
        return RelayPass(outbox, Tally(self.instruments), AT_ONCE)

    def record(self, kind: str, subject: str = "", owner: str | None = None) -> str:
        """Record one event; return its id."""
        row = self.conn.execute(
            "select weirkeeper.record_event(%s, owner_id => %s, subject => %s)::text as id",
            (kind, owner, subject),
        ).fetchone()
        assert row is not None
        return row["id"]

    def record_many(self, kind: str, count: int, prefix: str = "n/") -> None:
        """Record events with subjects of their own, in one transaction."""
        self.conn.execute(
            "insert into weirkeeper.event (type, subject)"
            " select %s, %s || i from generate_series(1, %s) i",
            (kind, prefix, count),
        )

    def rows(self, query: str, *params: object) -> list[dict[str, Any]]:
        """What a query gives."""
        return self.conn.execute(query, params).fetchall()

    def count(self, table: str) -> int:
        """Rows of one of our tables."""
        return self.rows(f"select count(*)::integer as n from weirkeeper.{table}")[0]["n"]

    def fanout(self, event_id: str) -> dict[str, int] | None:
        """Jobs by subscription of an event; None while it is not fanned out."""
        rows = self.rows("select jobs from weirkeeper.event_fanout where event_id = %s", event_id)
        return rows[0]["jobs"] if rows else None

    def jobs(self, kind: str) -> list[dict[str, Any]]:
        """Jobs of a kind that wait to be claimed, in the order of claims."""
        return self.rows(
            "select j.*, r.seq from weirkeeper.job j join weirkeeper.ready r on r.job_id = j.id"
            " where j.kind = %s order by r.seq",
            kind,
        )

    def refuse(self, subject: str) -> None:
        """Make the fan-out of every event of a subject fail."""
        refuse_jobs(self.conn, subject)

    def allow(self) -> None:
        """Undo `refuse`."""
        self.conn.execute("drop trigger refuse on weirkeeper.job")
