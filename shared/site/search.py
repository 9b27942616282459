"""PORT of the search index: what it keeps of notes, and what it finds.

Written by indexing alone, read by `corpus.search` and by receipts. An adapter never replaces a
document by an older one: a stale or repeated job changes nothing. The adapter on Postgres full
text is shared.postgres.site.search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from shared.site.note import Note, Ref

MAX_HITS = 100  # of one search


@dataclass(frozen=True, slots=True)
class Hit:
    """A note that was found. A higher score is a better match; the snippet is plain text."""

    note_id: str
    genre: str
    path: str
    title: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first; `corrected` says which words were replaced because nothing had them."""

    hits: Sequence[Hit]
    corrected: Mapping[str, Sequence[str]]


class Search(Protocol):
    """A search index."""

    def known(self, note_ids: Sequence[str]) -> dict[str, Ref]:
        """Which of these notes it has (or knows to be removed), in which version."""
        ...

    def put(self, notes: Sequence[Note]) -> int:
        """Add or replace documents by higher versions; return how many it took."""
        ...

    def remove(self, notes: Sequence[Ref]) -> int:
        """Remove documents of lower versions, and refuse those in future; return how many."""
        ...

    def expire(self, owner_id: str | None) -> None:
        """Let any version replace the documents of an owner (None: of everybody)."""
        ...

    def sweep(self, owner_id: str | None) -> int:
        """Remove expired documents whose note is gone; return how many."""
        ...

    def search(
        self, query: str, *, owner_id: str, limit: int = 20, published_only: bool = False
    ) -> Found:
        """Find notes of an owner that have every word; archived ones never.

        Args:
            query: any text; an empty one finds nothing, and no sign in it is an operator.
            owner_id: whose notes.
            limit: at most this many hits, 1 to MAX_HITS.
            published_only: as a visitor would search.
        """
        ...
