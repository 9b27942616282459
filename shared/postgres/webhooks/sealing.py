"""ADAPTER: what an older key of WEIRKEEPER_SECRET has sealed is sealed with the newest.

Called by a handler on the maintenance queue, so that an old key can be taken out of the setting
some time after a new one was put before it. Never shows a secret, also not one that does not open.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from shared.errors import ConfigurationError
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.webhooks.headers import open_headers, seal_headers, to_be_sealed
from shared.webhooks.sealing import Sealer

MOST = 10_000  # secrets in one go
BATCH = 500  # endpoints that are looked at together


class Sealed(NamedTuple):
    """A row as it was found."""

    endpoint: int
    no: int
    sealed: bytes
    owner: str


class Headers(NamedTuple):
    """Headers of an endpoint as they were found."""

    endpoint: int
    owner: str
    headers: dict[str, Any]


log = logging.getLogger(__name__)


def seal_anew(conn: Connection, sealer: Sealer, enough: Callable[[], bool]) -> int:
    """Seal with the newest key what an older one has sealed.

    Args:
        conn: in autocommit mode.
        sealer: has the keys.
        enough: asked between secrets: stop here.

    Returns:
        How many were sealed anew, an endpoint's headers as one. What no key opens is left as it is,
        and logged.
    """
    done = _headers(conn, sealer, enough)
    if not sealer.older:
        return done
    with translated():
        found: list[Any] = conn.execute(
            statement("endpoints/sealed_before"), {"marks": list(sealer.older), "limit": MOST}
        ).fetchall()
    for row in found:
        if enough():
            break
        done += _one(conn, sealer, Sealed(*row))
    return done


def _headers(conn: Connection, sealer: Sealer, enough: Callable[[], bool]) -> int:
    """Headers, also those that were stored before values were sealed."""
    if not sealer.can_seal:
        return 0
    done, after = 0, 0
    while True:
        with translated():
            found: list[Any] = conn.execute(
                statement("endpoints/with_headers"), {"after": after, "limit": BATCH}
            ).fetchall()
        for endpoint, owner, headers in found:
            if enough():
                return done
            if to_be_sealed(sealer, headers):
                done += _headers_of(conn, sealer, Headers(endpoint, owner, headers))
            after = endpoint
        if len(found) < BATCH:
            return done


def _headers_of(conn: Connection, sealer: Sealer, old: Headers) -> int:
    try:
        anew = seal_headers(sealer, open_headers(sealer, old.headers, old.owner), old.owner)
    except ConfigurationError as error:
        log.error("headers of endpoint %s stay as they are: %s", old.endpoint, error)  # noqa: TRY400
        return 0
    params = {
        "endpoint": old.endpoint,
        "headers": json.dumps(old.headers),
        "anew": json.dumps(anew),
    }
    with translated():
        return conn.execute(statement("endpoints/seal_headers"), params).rowcount


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
