"""Operations on notes: create, update, import, search."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shared.errors import InvalidArguments
from shared.ops.desk import Desk
from shared.ops.operation import Operation
from shared.site.folder import read_folder
from shared.site.imports import import_items, tell_imported, under
from shared.site.limits import check_owner
from shared.site.note import FIELDS, Written
from shared.site.receipts import receipt
from shared.site.search import MAX_HITS


class NoteFields(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Fields of a note; what is left out keeps its value, or gets the default."""

    genre: str | msgspec.UnsetType = msgspec.UNSET
    title: str | msgspec.UnsetType = msgspec.UNSET
    body: str | msgspec.UnsetType = msgspec.UNSET
    tags: list[str] | msgspec.UnsetType = msgspec.UNSET
    aliases: list[str] | msgspec.UnsetType = msgspec.UNSET
    parent_id: str | msgspec.UnsetType | None = msgspec.UNSET
    slug: str | msgspec.UnsetType = msgspec.UNSET
    lang: str | msgspec.UnsetType = msgspec.UNSET
    excerpt: str | msgspec.UnsetType = msgspec.UNSET
    published: bool | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    show_as_source: bool | msgspec.UnsetType = msgspec.UNSET
    css_classes: list[str] | msgspec.UnsetType = msgspec.UNSET

    def given(self) -> dict[str, object]:
        """Those that were given, by name."""
        values = {name: getattr(self, name) for name in FIELDS}
        return {name: value for name, value in values.items() if value is not msgspec.UNSET}


class Create(NoteFields, forbid_unknown_fields=True, kw_only=True):
    """Arguments of corpus.create."""


class Update(NoteFields, forbid_unknown_fields=True, kw_only=True):
    """Arguments of corpus.update."""

    id: str


class Saved(msgspec.Struct):
    """A note that was written, and whether a search finds it already.

    `indexed` false: look up `index_job_id` (null while the event has not become a job).
    """

    id: str
    path: str
    version: int
    event_id: str
    indexed: bool
    index_job_id: str | None


class Import(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of corpus.import. `under`: a place ("a/b") that it goes to."""

    folder: str
    genre: str = "wiki"
    under: str = ""


class Imported(msgspec.Struct):
    """What became of a folder's notes; `skipped` holds one line for each that could not be one.

    Accepted, not yet indexed: `event_ids` are to be followed.
    """

    created: int
    updated: int
    unchanged: int
    skipped: list[str]
    event_ids: list[str]


class Query(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of corpus.search."""

    query: str
    limit: int = 20
    published_only: bool = False


class Match(msgspec.Struct):
    """One note that was found."""

    note_id: str
    genre: str
    path: str
    title: str
    snippet: str
    score: float


class Matches(msgspec.Struct):
    """Notes that were found, best first, and words that were replaced because none had them."""

    hits: list[Match]
    corrected: dict[str, list[str]]


def create(desk: Desk, arguments: Create) -> Saved:
    """Add a note, then wait for its receipt."""
    return _saved(desk, desk.notes.create(desk.owner_id, arguments.given()))


def update(desk: Desk, arguments: Update) -> Saved:
    """Change a note, then wait for its receipt."""
    return _saved(desk, desk.notes.update(desk.owner_id, arguments.id, arguments.given()))


def import_folder(desk: Desk, arguments: Import) -> Imported:
    """Add or update the notes of a folder; indexing follows on its own."""
    if not arguments.folder:
        raise InvalidArguments(
            "folder: expected the path of a folder or a file; got ''; give one (. = this folder)"
        )
    skipped: list[str] = []
    items = under(arguments.under, read_folder(Path(arguments.folder), skipped.append))
    arrived = import_items(items, desk.notes, desk.owner_id, arguments.genre, skipped.append)
    tell_imported(desk.recorder, desk.owner_id, arrived)
    how = [note.how for note in arrived]
    return Imported(
        created=how.count("created"),
        updated=how.count("updated"),
        unchanged=how.count("unchanged"),
        skipped=skipped,
        event_ids=[note.event_id for note in arrived if note.how != "unchanged"],
    )


def search(desk: Desk, arguments: Query) -> Matches:
    """Find notes."""
    if not 1 <= arguments.limit <= MAX_HITS:
        raise InvalidArguments(f"limit: expected 1 to {MAX_HITS}; got {arguments.limit}")
    check_owner(desk.owner_id)
    found = desk.search.search(
        arguments.query,
        owner_id=desk.owner_id,
        limit=arguments.limit,
        published_only=arguments.published_only,
    )
    return msgspec.convert(
        {"hits": found.hits, "corrected": found.corrected}, Matches, from_attributes=True
    )


def _saved(desk: Desk, written: Written) -> Saved:
    got = receipt(written, desk.waits, desk.search)
    return Saved(
        id=written.id,
        path=written.path,
        version=written.version,
        event_id=written.event_id,
        indexed=got.indexed,
        index_job_id=got.index_job_id,
    )


OPERATIONS = (
    Operation("corpus.create", "Add a note.", Create, Saved, create, writes=True),
    Operation("corpus.update", "Change a note.", Update, Saved, update, writes=True),
    Operation(
        "corpus.import",
        "Add or update the notes of a folder of Markdown.",
        Import,
        Imported,
        import_folder,
        writes=True,
    ),
    Operation("corpus.search", "Find notes by their words.", Query, Matches, search),
)
