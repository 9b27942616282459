"""Use case: import a folder of Markdown, in batches, again and again without doubling.

A file is the note of its name under the note of its folder, so an import of the same folder
updates. Folders come first, level by level, since a note names its parent. A batch is one
transaction of at most 200 notes, so 2,000 notes never become one huge one; a batch that the
database refuses is done one by one, so that a bad note is reported alone. What changed something is
told once, at its end (vault.imported); each note's own change was told in its batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from shared.errors import DatabaseRefused, InvalidArguments
from shared.events.port import Recorder
from shared.site.drafts import Arrived, Draft, Item
from shared.site.limits import check_fields, check_owner
from shared.site.notes import Notes

MAX_NOTES = 200  # of one transaction
MAX_TEXT = 4 * 1024 * 1024  # characters of one transaction
Complain = Callable[[str], None]


def import_items(
    items: Sequence[Item], notes: Notes, owner_id: str, genre: str, complain: Complain
) -> list[Arrived]:
    """Write everything; return what became of each.

    Args:
        items: folders before what is in them (`read_folder`).
        notes: where they go.
        owner_id: whose they will be.
        genre: what they will be.
        complain: called with one line for each item that was refused.

    Raises:
        InvalidArguments: an owner or genre that no note can have.
    """
    check_owner(owner_id)
    check_fields({"genre": genre})
    ids: dict[tuple[str, ...], str] = {}
    arrived: list[Arrived] = []
    for _, level in groupby(items, key=lambda item: len(item.parts)):
        for batch in batches([item for item in level if _placed(item, ids)]):
            drafts = {item.parts: _with_parent(item, ids) for item in batch}
            written = _arrive(drafts, notes, owner_id, genre, complain)
            ids.update(_by_place(drafts, written))
            arrived += written
    return arrived


def tell_imported(recorder: Recorder, owner_id: str, arrived: Sequence[Arrived]) -> str | None:
    """Record vault.imported for an import that changed something; return the event's id.

    Args:
        recorder: of a connection in autocommit mode: the notes are committed already.
        owner_id: whose they are.
        arrived: what `import_items` returned.
    """
    counts = Counter(note.how for note in arrived)
    if not counts["created"] and not counts["updated"]:
        return None
    return recorder.record(
        "vault.imported",
        owner_id=owner_id,
        subject=f"vault/{owner_id}",
        data={how: counts[how] for how in ("created", "updated", "unchanged")},
    )


def under(place: str, items: Sequence[Item]) -> list[Item]:
    """The same items below a place ("a" or "a/b", made of notes); "" leaves them where they are."""
    above = tuple(name for name in place.split("/") if name)
    folders = [Item(above[: n + 1], None) for n in range(len(above))]
    return [*folders, *(Item((*above, *item.parts), item.draft) for item in items)]


def batches(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Cut into transactions."""
    batch: list[Item] = []
    size = 0
    for item in items:
        length = len(item.draft.body) if item.draft else 0
        if batch and (len(batch) == MAX_NOTES or size + length > MAX_TEXT):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += length
    if batch:
        yield batch


def _placed(item: Item, ids: dict[tuple[str, ...], str]) -> bool:
    """Whether its folder became a note; if that was refused, so is what is in it."""
    return len(item.parts) == 1 or item.parts[:-1] in ids


def _with_parent(item: Item, ids: dict[tuple[str, ...], str]) -> Draft:
    parent = ids.get(item.parts[:-1])
    name = item.parts[-1]
    if item.draft is None:
        return Draft(slug=name, parent_id=parent, title=name, folder=True)
    return replace(item.draft, parent_id=parent)


def _arrive(
    drafts: dict[tuple[str, ...], Draft],
    notes: Notes,
    owner_id: str,
    genre: str,
    complain: Complain,
) -> list[Arrived]:
    try:
        return notes.arrive(owner_id, genre, list(drafts.values()))
    except (InvalidArguments, DatabaseRefused):
        pass
    arrived = []
    for parts, draft in drafts.items():
        try:
            arrived += notes.arrive(owner_id, genre, [draft])
        except (InvalidArguments, DatabaseRefused) as error:
            complain(f"{'/'.join(parts)}: skipped: {error}")
    return arrived


def _by_place(
    drafts: dict[tuple[str, ...], Draft], arrived: Sequence[Arrived]
) -> dict[tuple[str, ...], str]:
    ids = {(note.parent_id, note.slug): note.id for note in arrived}
    found = {parts: ids.get((d.parent_id, d.slug)) for parts, d in drafts.items()}
    return {parts: note_id for parts, note_id in found.items() if note_id is not None}
