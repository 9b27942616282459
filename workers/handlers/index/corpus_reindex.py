"""Handler of `corpus.reindex` {"owner_id": …}: write the index anew, of one owner or everybody.

Enqueued by hand or by an operator after the index's rules changed; idempotent like corpus.index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Discard
from shared.postgres.site.notes import PostgresNotes
from shared.postgres.site.search import PostgresSearch
from shared.site.indexing import reindex


def handle(ctx: Context, args: Mapping[str, Any]) -> Completed | Discard:
    """Reindex; the result counts documents written and removed."""
    owner_id = args.get("owner_id")
    if owner_id is not None and not isinstance(owner_id, str):
        return Discard(f"owner_id: expected text, or nothing for everybody; got {owner_id!r}")
    with ctx.connection() as conn:
        done = reindex(owner_id, PostgresNotes(conn), PostgresSearch(conn))
    return Completed({"written": done.written, "removed": done.removed})
