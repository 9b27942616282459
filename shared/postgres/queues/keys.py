"""ADAPTER: concurrency keys: opening and closing them, and the net under the places that they have.

Claims and ends take and give places in statements of their own (the functions `admit` and `unpark`
of the database); here is what timers and other parts of the program do. The key's row is locked
for the length of a transaction, in which every end of a job of that key waits: commit at once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, LiteralString

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement

UNTIL_ENABLED = "infinity"


def key_open(conn: Connection, name: str, open_at: datetime | str | None = None) -> int:
    """Start no job of a key before a moment; those that run go on.

    Args:
        conn: any session; in a transaction, the last thing before it commits.
        name: of the key, 1 to 200 characters; need not be in use.
        open_at: None = now; UNTIL_ENABLED = until it is called again.

    Returns:
        How many parked jobs were put in line.

    Raises:
        InvalidArguments: that cannot be a name.
    """
    return _number(conn, statement("keys/open"), {"name": name, "open_at": open_at})


def open_due(conn: Connection) -> int:
    """Let jobs go on whose key has opened; how many."""
    return _number(conn, statement("keys/open_due"), {})


def sweep(conn: Connection) -> int:
    """Let jobs go on that wait for a key although it has a place for them; how many."""
    return _number(conn, statement("keys/sweep"), {})


def _number(conn: Connection, text: LiteralString, params: dict[str, Any]) -> int:
    with translated():
        row: Any = conn.execute(text, params).fetchone()
    return int(row[0])
