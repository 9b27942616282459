"""ADAPTER: what an older key of WEIRKEEPER_SECRET has sealed is sealed with the newest.

Called by a handler on the maintenance queue, so that an old key can be taken out of the setting
some time after a new one was put before it. Never shows a secret, also not one that does not open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from shared.errors import ConfigurationError
from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement
from shared.webhooks.sealing import Sealer

MOST = 10_000  # secrets in one go


class Sealed(NamedTuple):
    """A row as it was found."""

    endpoint: int
    no: int
    sealed: bytes
    owner: str


log = logging.getLogger(__name__)


def seal_anew(conn: Connection, sealer: Sealer, enough: Callable[[], bool]) -> int:
    """Seal with the newest key what an older one has sealed.

    Args:
        conn: in autocommit mode.
        sealer: has the keys.
        enough: asked between secrets: stop here.

    Returns:
        How many were sealed anew. What no key opens is left as it is, and logged.
    """
    if not sealer.older:
        return 0
    with translated():
        found: list[Any] = conn.execute(
            statement("endpoints/sealed_before"), {"marks": list(sealer.older), "limit": MOST}
        ).fetchall()
    done = 0
    for row in found:
        if enough():
            break
        done += _one(conn, sealer, Sealed(*row))
    return done


def _one(conn: Connection, sealer: Sealer, old: Sealed) -> int:
    try:
        anew = sealer.seal(sealer.unseal(bytes(old.sealed), old.owner), old.owner)
    except ConfigurationError as error:
        log.error("a secret of endpoint %s stays as it is: %s", old.endpoint, error)  # noqa: TRY400
        return 0
    with translated():
        return conn.execute(
            statement("endpoints/seal_anew"), {**old._asdict(), "anew": anew}
        ).rowcount
