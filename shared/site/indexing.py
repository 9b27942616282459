"""Use case: bring the index up to date with what stands at a subject now.

Called by the handler of `corpus.index` after each change of a note. The relay coalesces events of
one subject into the latest, whose data tells of one note only; so this goes by the subject: every
note that stands there now, every deleted one that last stood there, and below a note that moved
everything. It reads current state and the index refuses older versions: repeating it is harmless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.events.event import Event
from shared.site.note import Ref
from shared.site.notes import Notes
from shared.site.search import Search

BATCH = 100  # notes read and written at a time


@dataclass(frozen=True, slots=True)
class Indexed:
    """How many documents were written and removed."""

    written: int
    removed: int


def index(event: Event, notes: Notes, search: Search) -> Indexed:
    """Index what a `corpus.note.changed` is about.

    Args:
        event: its subject, and of its data note_id, op, version and path_changed.
        notes: read, as they are now.
        search: written.
    """
    note_id = str(event.data.get("note_id", ""))
    removed = _remove(event, note_id, notes, search)
    written = 0
    standing = notes.at(event.subject, note_id)
    known = search.known([ref.id for ref in standing])
    for ref in standing:
        moved = ref.id == note_id and bool(event.data.get("path_changed"))
        if moved or (ref.id in known and known[ref.id].path != ref.path):
            written += sum(_reindex(batch, notes, search) for batch in notes.below(ref.id))
        # The note itself comes last: its path in the index tells a retry what is left below.
        written += _fresh([ref], known, notes, search)
    return Indexed(written, removed)


def reindex(owner_id: str | None, notes: Notes, search: Search) -> Indexed:
    """Write every document of an owner anew, whatever the index holds; found all the while.

    Args:
        owner_id: None = of everybody.
        notes: read, as they are now.
        search: written.
    """
    search.expire(owner_id)
    written = sum(_reindex(batch, notes, search) for batch in notes.every(owner_id))
    return Indexed(written, search.sweep(owner_id))


def _remove(event: Event, note_id: str, notes: Notes, search: Search) -> int:
    gone = notes.removed(event.subject)
    if event.data.get("op") == "delete":
        gone.append(Ref(note_id, int(event.data.get("version", 1)), ""))
    if not gone:
        return 0
    count = search.remove(gone)
    notes.forget([ref.id for ref in gone])
    return count


def _reindex(refs: list[Ref], notes: Notes, search: Search) -> int:
    return _fresh(refs, search.known([ref.id for ref in refs]), notes, search)


def _fresh(refs: list[Ref], known: Mapping[str, Ref], notes: Notes, search: Search) -> int:
    stale = [r.id for r in refs if r.id not in known or known[r.id].version < r.version]
    return sum(search.put(notes.load(stale[i : i + BATCH])) for i in range(0, len(stale), BATCH))
