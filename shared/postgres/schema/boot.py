"""What every program does before it works: wait for a database that it can use.

A database that is away, or whose schema is still being migrated, is waited for with a backoff,
never fatal: a restart of Postgres must not end a program for good. What waiting cannot mend
(a breaking-newer schema) is raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from shared.backoff import RECONNECT, jittered
from shared.errors import DatabaseRefused, WeirkeeperError
from shared.postgres.driver.connect import Connection, Use, bare, settle
from shared.postgres.driver.probe import require_direct
from shared.postgres.schema.accepted import check_schema
from shared.services.stop import StopSignal

log = logging.getLogger(__name__)


def wait_for_database(
    url: str,
    name: str,
    stop: StopSignal,
    use: Use = Use.DURABLE,
    turned: Callable[[], None] = lambda: None,
) -> Connection | None:
    """Connect and check the schema, as often as it takes.

    Args:
        url: libpq URI.
        name: of the session.
        stop: ends the wait.
        use: of the session.
        turned: called before each try: a loop that waits for the database is none that hangs.

    Returns:
        An open connection, or None when a stop was requested first.

    Raises:
        ConfigurationError: a pooler in between that breaks what a session is for.
        SchemaTooNew: a breaking migration that this build does not know.
    """
    attempt, said = 0, ""
    while not stop.requested:
        turned()
        try:
            return _checked(url, name, use)
        except WeirkeeperError as error:
            if not (error.transient or isinstance(error, DatabaseRefused)):
                raise
            attempt += 1
            if str(error) != said:
                said = str(error)
                log.warning("waiting for the database: %s", said)
        stop.wait(jittered(RECONNECT.delay(attempt)))
    return None


def _checked(url: str, name: str, use: Use) -> Connection:
    conn = bare(url, name)
    try:
        require_direct(conn, url, name)
        settle(conn, use)
        check_schema(conn)
    except BaseException:
        conn.close()
        raise
    return conn
