"""What the server has to give: asked once at boot, for the connection budget and for texts."""

from __future__ import annotations

from shared.errors import ConfigurationError
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement


def usable_connections(conn: Connection) -> int:
    """How many connections ordinary sessions may open: all less those reserved."""
    with translated():
        row = conn.execute(statement("session/usable_connections")).fetchone()
    if row is None or not isinstance(row[0], int):
        raise RuntimeError("a select without a from gave no row")
    return row[0]


def check_encoding(conn: Connection) -> None:
    """Refuse a database that cannot hold every text.

    Raises:
        ConfigurationError: its encoding is not UTF8.
    """
    encoding = conn.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ConfigurationError.of(
            "DATABASE_URL",
            "a database with the encoding UTF8",
            encoding,
            "create one with createdb --template=template0 --encoding=UTF8 NAME, and name it",
        )
