"""Handler of `corpus.index`: a note changed, so the search index follows.

Runs in a child of the index queue, after the relay made a job of `corpus.note.changed`. It only
joins the two adapters to the use case (shared.site.indexing), which is idempotent: it reads what
is true now and never replaces a newer document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.events.event import Event
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed
from shared.postgres.site.notes import PostgresNotes
from shared.postgres.site.search import PostgresSearch
from shared.site.indexing import index


def handle(ctx: Context, _args: Mapping[str, Any], event: Event) -> Completed:
    """Index what the event is about; the result counts documents written and removed."""
    with ctx.connection() as conn:
        done = index(event, PostgresNotes(conn), PostgresSearch(conn))
    return Completed({"written": done.written, "removed": done.removed})
