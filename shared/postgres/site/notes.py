"""ADAPTER of the port Notes: schema `site` of the same database.

Events are recorded by the table's trigger, in the transaction of each write, so that SQL from
elsewhere tells the same. The connection is in autocommit mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import psycopg

from shared.errors import InvalidArguments, NotFound
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.site.drafts import Arrived, Draft
from shared.site.limits import check_drafts, check_fields, check_owner
from shared.site.note import Changes, Note, Ref, Written

BATCH = 1000  # references handed out at a time
_EMPTY: dict[str, Any] = {
    "genre": "wiki", "title": "", "body": "", "tags": [], "parent_id": None, "published": False,
    "show_as_source": True, "aliases": [], "excerpt": "", "slug": "", "archived": False,
    "css_classes": [], "lang": "",
}  # fmt: skip


class PostgresNotes:
    """Notes through one connection."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def create(self, owner_id: str, fields: Changes) -> Written:
        """Add a note; see shared.site.notes.Notes.create."""
        check_owner(owner_id)
        given = {**_EMPTY, **_checked(fields)}
        with translated(), self._conn.transaction(), _told():
            self._check_parent(owner_id, fields.get("parent_id"))
            row = self._one("notes/create", {"owner_id": owner_id, **given})
        return _written(row, changed=True)

    def update(self, owner_id: str, note_id: str, fields: Changes) -> Written:
        """Change what is given; see shared.site.notes.Notes.update."""
        check_owner(owner_id)
        given = _checked(fields)
        params = {**_EMPTY, **given, "given": list(given), "owner_id": owner_id}
        params["id"] = _number(note_id)
        with translated(), self._conn.transaction(), _told():
            before = self._one("notes/lock", params, note_id)
            self._check_parent(owner_id, fields.get("parent_id"))
            row = self._one("notes/update", params)
        return _written(row, changed=row[1] != before[0])

    def arrive(self, owner_id: str, genre: str, drafts: Sequence[Draft]) -> list[Arrived]:
        """Add or update by name; see shared.site.notes.Notes.arrive."""
        check_drafts(drafts)
        folders = [draft for draft in drafts if draft.folder]
        files = [draft for draft in drafts if not draft.folder]
        who = {"owner_id": owner_id, "genre": genre}
        with translated(), self._conn.transaction(), _told():
            rows = self._rows("notes/ensure_folders", {**who, "drafts": _json(folders)})
            rows += self._rows("notes/upsert", {**who, "drafts": _json(files)})
            named = self._rows("notes/named", {**who, "drafts": _json(drafts)})
        how = {row[0]: "created" if row[4] else "updated" for row in rows}
        return [_arrived(row, how.get(row[0], "unchanged")) for row in named]

    def at(self, subject: str, note_id: str) -> list[Ref]:
        """Notes at a subject, and one by id; see shared.site.notes.Notes.at."""
        genre, _, path = subject.partition("://")
        params = {"genre": genre, "path": path, "id": _number(note_id)}
        return self._settled("notes/at", params)

    def below(self, note_id: str) -> Iterator[list[Ref]]:
        """Everything below a note; see shared.site.notes.Notes.below."""
        refs = self._settled("notes/below", {"id": _number(note_id)})
        for start in range(0, len(refs), BATCH):
            yield refs[start : start + BATCH]

    def every(self, owner_id: str | None) -> Iterator[list[Ref]]:
        """All notes, in batches; see shared.site.notes.Notes.every."""
        params = {"owner_id": owner_id, "after": 0, "limit": BATCH}
        while True:
            with translated():
                rows = self._rows("notes/page", params)
            if not rows:
                return
            yield [Ref(*row) for row in rows]
            params["after"] = int(rows[-1][0])

    def removed(self, subject: str) -> list[Ref]:
        """Deleted notes of a subject; see shared.site.notes.Notes.removed."""
        with translated():
            return [Ref(*row) for row in self._rows("notes/removed", {"subject": subject})]

    def forget(self, note_ids: Sequence[str]) -> None:
        """Drop the memory of deleted notes; see shared.site.notes.Notes.forget."""
        if note_ids:
            with translated():
                self._conn.execute(statement("notes/forget"), {"ids": list(map(_number, note_ids))})

    def load(self, note_ids: Sequence[str]) -> list[Note]:
        """Notes as they are now; see shared.site.notes.Notes.load."""
        with translated():
            rows = self._rows("notes/load", {"ids": list(map(_number, note_ids))})
        return [_note(row) for row in rows]

    def _settled(self, name: str, params: dict[str, Any]) -> list[Ref]:
        """References with true paths; untrue ones are mended and read again."""
        with translated():
            rows = self._rows(name, params)
            untrue = [int(row[0]) for row in rows if not row[3]]
            if untrue:
                self._conn.execute(statement("notes/settle"), {"ids": untrue})
                rows = self._rows(name, params)
        return [Ref(*row[:3]) for row in rows]

    def _check_parent(self, owner_id: str, parent_id: object) -> None:
        """Refuse a parent of another owner as if it were not there."""
        if parent_id is None:
            return
        params = {"id": _number(parent_id), "owner_id": owner_id}
        if self._conn.execute(statement("notes/owned"), params).fetchone() is None:
            raise InvalidArguments(
                f"parent_id: expected a note of yours; got {str(parent_id)[:40]!r}; there is none"
            )

    def _rows(self, name: str, params: dict[str, Any]) -> list[Any]:
        return self._conn.execute(statement(name), params).fetchall()

    def _one(self, name: str, params: dict[str, Any], asked: str = "") -> Any:
        row = self._conn.execute(statement(name), params).fetchone()
        if row is None:
            raise NotFound(
                f"note: expected the id of one of yours; got {asked[:40]!r}; there is none"
            )
        return row


class _told:  # noqa: N801  (reads as a word in `with`, like `translated`)
    """What the table refuses, as a sentence to who wrote it."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        """Translate what concerns the values; leave the rest to `translated`."""
        if isinstance(error, psycopg.errors.UniqueViolation):
            raise InvalidArguments(
                "slug: expected a name that no other note has under that parent; got one that is "
                "taken; choose another"
            ) from error
        if isinstance(error, psycopg.errors.CheckViolation | psycopg.errors.DataError):
            raise InvalidArguments(f"note: {error.diag.message_primary}") from error


def _written(row: Any, *, changed: bool) -> Written:
    note_id, version, path, event_id = row
    return Written(note_id, version, path, event_id, changed)


def _arrived(row: Any, how: str) -> Arrived:
    note_id, parent_id, slug, event_id = row
    return Arrived(note_id, parent_id, slug, event_id, how)


def _note(row: Any) -> Note:
    *begin, tags, aliases, published, archived = row
    note_id, version, owner_id, genre, path, title, body, excerpt = begin
    texts = (title, body, excerpt, tuple(tags), tuple(aliases))
    return Note(note_id, version, owner_id, genre, path, *texts, published, archived)


def _checked(fields: Changes) -> dict[str, Any]:
    check_fields(fields)
    given = {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}
    if given.get("parent_id") is not None:
        given["parent_id"] = _number(given["parent_id"])
    return given


def _number(note_id: object) -> int:
    """An id as the database has it; what cannot be one names no note."""
    text = str(note_id)
    if not (len(text) <= 19 and text.isascii() and text.isdigit() and int(text) < 2**63):
        return -1
    return int(text)


def _json(drafts: Sequence[Draft]) -> str:
    return json.dumps([asdict(draft) for draft in drafts], ensure_ascii=False)
