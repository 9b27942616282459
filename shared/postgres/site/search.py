"""ADAPTER of the port Search: Postgres full text, in schema `site`.

Vectors and queries are made here from shared.site.words, not by the server's parser, so that they
are the same in every locale and need no extension. Words match by their beginning; what nothing
matches is looked for with one letter other. The connection is in autocommit mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.site.vectors import alternatives, lexemes_of, query_of, vector_of, vocabulary
from shared.site.note import Note, Ref
from shared.site.search import MAX_HITS, Found, Hit
from shared.site.words import Term, terms

MIN_TYPO = 4  # letters of a word that may be mistyped
LONG_WORD = 24  # characters; longer is a script without spaces, where half a word is a word
_MARKUP = re.compile(r"[#*_`|>~\[\]]+|-{3,}")


class PostgresSearch:
    """A search index through one connection."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def known(self, note_ids: Sequence[str]) -> dict[str, Ref]:
        """What the index has; see shared.site.search.Search.known."""
        with translated():
            rows: list[Any] = self._conn.execute(
                statement("search/known"), {"ids": list(map(int, note_ids))}
            ).fetchall()
        return {row[0]: Ref(*row) for row in rows}

    def put(self, notes: Sequence[Note]) -> int:
        """Add or replace documents; see shared.site.search.Search.put."""
        if not notes:
            return 0
        found = [(note, lexemes_of(note)) for note in notes]
        words = sorted(vocabulary(lexemes for _, lexemes in found))
        rows = [_row(note, vector_of(lexemes)) for note, lexemes in found]
        with translated():
            self._conn.execute(statement("search/add_terms"), {"terms": words})
            with self._conn.cursor() as cursor:  # one batch on the wire; each row stands alone
                cursor.executemany(statement("search/put"), rows)
                return max(cursor.rowcount, 0)

    def remove(self, notes: Sequence[Ref]) -> int:
        """Make documents tombstones; see shared.site.search.Search.remove."""
        newest = {int(ref.id): ref.version for ref in sorted(notes, key=lambda r: r.version)}
        params = {"ids": list(newest), "versions": list(newest.values())}
        with translated():
            return self._conn.execute(statement("search/remove"), params).rowcount

    def expire(self, owner_id: str | None) -> None:
        """Let any version replace documents; see shared.site.search.Search.expire."""
        with translated():
            self._conn.execute(statement("search/expire"), {"owner_id": owner_id})

    def sweep(self, owner_id: str | None) -> int:
        """Remove what was not replaced; see shared.site.search.Search.sweep."""
        with translated():
            return self._conn.execute(statement("search/sweep"), {"owner_id": owner_id}).rowcount

    def search(
        self, query: str, *, owner_id: str, limit: int = 20, published_only: bool = False
    ) -> Found:
        """Find notes; see shared.site.search.Search.search."""
        asked = terms(query)
        if not asked:
            return Found((), {})
        scope = {
            "owner_id": owner_id,
            "limit": max(1, min(limit, MAX_HITS)),
            "published_only": published_only,
        }
        with translated():
            hits = self._find(asked, {}, scope)
            if hits:
                return Found(hits, {})
            similar = self._similar(asked)
            return Found(self._find(asked, similar, scope) if similar else (), similar)

    def _find(
        self, asked: Sequence[Term], similar: dict[str, list[str]], scope: dict[str, Any]
    ) -> list[Hit]:
        params = {
            **scope,
            "query": query_of(asked, similar),
            "words": list(alternatives(asked, similar)),
        }
        rows: list[Any] = self._conn.execute(statement("search/find"), params).fetchall()
        return [_hit(row) for row in rows]

    def _similar(self, asked: Iterable[Term]) -> dict[str, list[str]]:
        found = {}
        for term in asked:
            if term.spaced and len(term.text) >= MIN_TYPO:
                rows: list[Any] = self._conn.execute(
                    statement("search/similar"), {"word": term.text}
                ).fetchall()
                if rows:
                    found[term.text] = [row[0] for row in rows]
        return found


def _row(note: Note, words: str) -> dict[str, Any]:
    return {
        "id": int(note.id),
        "version": note.version,
        "owner_id": note.owner_id,
        "genre": note.genre,
        "path": note.path,
        "title": note.title,
        "excerpt": note.excerpt,
        "body": note.body,
        "published": note.published,
        "archived": note.archived,
        "words": words,
    }


def _hit(row: Any) -> Hit:
    note_id, genre, path, title, score, excerpt, fragment, cut = row
    text = snippet(fragment or excerpt, cut=cut)
    # An imported note begins with its title as a heading, which is shown already.
    text = text.removeprefix(f"{title} ") or text
    return Hit(note_id, genre, path, title, text, score)


def snippet(fragment: str, *, cut: bool) -> str:
    """One line of plain text from Markdown; one that was cut out of the middle begins at a word."""
    words = _MARKUP.sub(" ", fragment).split()
    if cut and len(words) > 1 and len(words[0]) < LONG_WORD:
        words = words[1:]
    return ("… " if cut else "") + " ".join(words)
