"""Telling the database what the application declares, so that SQL alone can refuse the unknown.

Called by `weirkeeper migrate` (exactly this application) and by processes at boot (added to what
another generation declared, so that two versions run side by side).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from shared.app import App
from shared.config.queues import Queue
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.queues import periodic


def declare(conn: Connection, app: App, *, replace: bool = False) -> None:
    """Write queues, kinds, periodic jobs, event types and routes that are new or changed.

    Args:
        conn: in autocommit mode.
        app: the checked application.
        replace: remove routes and periodic jobs that this application does not declare.
    """
    with translated(), conn.transaction():
        conn.execute(statement("catalog/lock"))
        _queues(conn, app.all_queues)
        _kinds(conn, app)
        periodic.declare(conn, app.periodics, app.all_kinds, replace=replace)
        _event_types(conn, app)
        _routes(conn, app, replace=replace)


def has_route(conn: Connection, event_type: str, subscription: str) -> bool:
    """Whether events of a type become jobs of a subscription in what runs on this database.

    Args:
        conn: any session.
        event_type: name of the type.
        subscription: name of the subscription.
    """
    with translated():
        params = {"type": event_type, "subscription": subscription}
        return conn.execute(statement("catalog/has_route"), params).fetchone() is not None


def _queues(conn: Connection, queues: Mapping[str, Queue]) -> None:
    rows = sorted(queues.values(), key=lambda q: q.name)
    conn.execute(
        statement("catalog/declare_queues"),
        {
            "names": [q.name for q in rows],
            "awaited": [q.awaited for q in rows],
            "caps": [q.cap for q in rows],
        },
    )


def _kinds(conn: Connection, app: App) -> None:
    rows = sorted(app.all_kinds.values(), key=lambda k: k.name)
    queues = app.all_queues
    conn.execute(
        statement("catalog/declare_kinds"),
        {
            "names": [k.name for k in rows],
            "queues": [k.queue for k in rows],
            "max_attempts": [k.max_attempts for k in rows],
            "timeouts_ms": [round((k.timeout or queues[k.queue].timeout) * 1000) for k in rows],
            "awaited": [queues[k.queue].awaited if k.awaited is None else k.awaited for k in rows],
            "searchable": [json.dumps(k.searchable) for k in rows],
            "max_per_key": [k.max_per_key for k in rows],
            "fair": [k.fair for k in rows],
            "rate_n": [k.rate and k.rate.n for k in rows],
            "rate_ms": [k.rate and round(k.rate.per * 1000) for k in rows],
            "commands": [json.dumps(k.command or queues[k.queue].command) for k in rows],
        },
    )


def _event_types(conn: Connection, app: App) -> None:
    rows = sorted(app.event_types, key=lambda t: t.name)
    conn.execute(
        statement("catalog/declare_event_types"),
        {
            "names": [t.name for t in rows],
            "descriptions": [t.description for t in rows],
            "subjects": [t.subject for t in rows],
            "exposures": [t.exposure for t in rows],
        },
    )


def _routes(conn: Connection, app: App, *, replace: bool) -> None:
    rows = sorted((name, sub.name, sub.coalesce, sub.endpoints) for name, sub in app.routes)
    conn.execute(
        statement("catalog/declare_routes"),
        {
            "types": [r[0] for r in rows],
            "subscriptions": [r[1] for r in rows],
            "coalesces": [r[2] for r in rows],
            "endpoints": [r[3] for r in rows],
            "names": [s.name for s in app.subscriptions],
            "replace": replace,
        },
    )
