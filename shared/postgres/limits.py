"""What the server has to give: asked once at boot, for the connection budget."""

from __future__ import annotations

from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement


def usable_connections(conn: Connection) -> int:
    """How many connections ordinary sessions may open: all less those reserved."""
    with translated():
        row = conn.execute(statement("session/usable_connections")).fetchone()
    if row is None or not isinstance(row[0], int):
        raise RuntimeError("a select without a from gave no row")
    return row[0]
