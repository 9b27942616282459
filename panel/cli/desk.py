"""The desk of whoever sits at the command line: adapters on the database that settings name.

Stands between the commands and the operations. Opened for one command, closed after it. Waits
open their own connection, and only when something is waited for.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from shared.config.settings import Settings
from shared.jobs.port import untold
from shared.ops.desk import Desk
from shared.postgres.application.waits import PostgresWaits
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.events.log import PostgresEventLog
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.schema.accepted import check_schema
from shared.postgres.site.notes import PostgresNotes
from shared.postgres.site.search import PostgresSearch
from shared.postgres.webhooks.endpoints import PostgresWebhooks
from shared.webhooks.rules import rules

OWNER = "owner"


def add_desk_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what every command at a desk takes."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument("--owner", default=OWNER, metavar="ID", help="act for this owner")


@contextmanager
def open_desk(owner_id: str = OWNER, told: Callable[[int], None] = untold) -> Iterator[Desk]:
    """A desk on the database of the running server, or of DATABASE_URL.

    Args:
        owner_id: who sits at it.
        told: called with how many are done, by what takes long.

    Raises:
        ConfigurationError: no database is named and no server runs.
        DatabaseUnavailable: it does not answer.
        SchemaTooOld: it has not been migrated.
    """
    settings = Settings.load()
    url = settings.database()
    # Most commands wait for nothing: waits connect when asked.
    with closing(_connected(url)) as conn, closing(PostgresWaits(url, "cli")) as waits:
        webhooks = PostgresWebhooks(conn, rules(settings))
        yield Desk(
            owner_id=owner_id,
            notes=PostgresNotes(conn),
            search=PostgresSearch(conn),
            inspector=PostgresInspector(conn),
            waits=waits,
            recorder=PostgresRecorder(conn),
            events=PostgresEventLog(conn),
            webhooks=webhooks,
            endpoints=webhooks,
            told=told,
        )


def _connected(url: str) -> Connection:
    conn = connect(url, "cli", Use.DURABLE)
    try:
        check_schema(conn)
    except BaseException:
        conn.close()
        raise
    return conn
