"""What a person reads once everything is ready: where things are, and what to try next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote

from shared.app import App
from shared.config.installation import schema_name
from shared.config.spelling import command_line
from shared.config.urls import masked
from shared.site.receipts import SUBSCRIPTION


def greeting(
    home: Path, database_url: str, addresses: Mapping[str, str], seconds: float, app: App
) -> list[str]:
    """The lines.

    Args:
        home: WEIRKEEPER_HOME.
        database_url: shown without its password.
        addresses: host:port by role; "receiver": where webhooks may be sent on this machine.
        seconds: from the start until ready.
        app: what runs, the site's declarations included if it has them.
    """
    listener, metrics = (addresses.get(role, "") for role in ("listener", "metrics"))
    ours, receiver = command_line(home), addresses.get("receiver")
    psql, schema = quote(str(home / "run" / "psql")), schema_name()
    return [
        f"ready after {seconds:.1f} s",
        "",
        f"  listener   http://{listener}/v1/jobs/ID/wait?max=2",
        f"  metrics    http://{metrics}/metrics",
        f"  database   {masked(database_url)}",
        f"  logs       {home / 'log'}",
        *([f"  webhooks   may be sent to {receiver}, too (docs/webhooks.md)"] if receiver else []),
        "",
        "Try next, in a second shell:",
        *([f"  {ours} demo"] if has_site(app) else []),
        f"  {ours} status",
        f"  curl -s http://{metrics}/metrics | grep ^weirkeeper_jobs",
        *(f'  {psql} -c "select {schema}.{call}"' for call in _calls(app)),
        "",
        "Ctrl-C drains and stops everything; the data stays.",
    ]


def has_site(app: App) -> bool:
    """Whether the reference site's declarations are among the application's."""
    return any(subscription.name == SUBSCRIPTION for subscription in app.subscriptions)


def _calls(app: App) -> Iterator[str]:
    """An event to record and a job to enqueue: the first that are declared."""
    if has_site(app):
        yield "record_event('corpus.note.changed', subject => 'writing://hello')"
        yield "enqueue('corpus.reindex', '{}')"
        return
    for event_type in app.event_types[:1]:
        yield f"record_event('{event_type.name}')"
    for kind in app.kinds[:1]:
        yield f"enqueue('{kind.name}', '{{}}')"
