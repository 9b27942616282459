"""PORT of the notes: reading and writing them, whatever keeps them.

Used by the corpus use cases (write) and by indexing (read). The adapter is
shared.postgres.site.notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from shared.site.drafts import Arrived, Draft
from shared.site.note import Changes, Note, Ref, Written


class Notes(Protocol):
    """The notes of every owner. Each method is a transaction of its own."""

    def create(self, owner_id: str, fields: Changes) -> Written:
        """Add a note.

        Raises:
            InvalidArguments: a value that a note cannot have, or a name that is taken.
        """
        ...

    def update(self, owner_id: str, note_id: str, fields: Changes) -> Written:
        """Change what is given.

        Raises:
            NotFound: no such note of this owner.
            InvalidArguments: a value that a note cannot have, or a name that is taken.
        """
        ...

    def arrive(self, owner_id: str, genre: str, drafts: Sequence[Draft]) -> list[Arrived]:
        """Add or update notes by their name under their parent, in one transaction.

        Raises:
            InvalidArguments: one of them cannot be stored; nothing was written.
        """
        ...

    def at(self, subject: str, note_id: str) -> list[Ref]:
        """Notes that stand at a subject now, whoever owns them, and the note itself.

        Paths are true when they are handed out: one that a concurrent rename left behind is
        mended first.
        """
        ...

    def below(self, note_id: str) -> Iterator[list[Ref]]:
        """Everything below a note, in batches; paths as of `at`."""
        ...

    def every(self, owner_id: str | None) -> Iterator[list[Ref]]:
        """All notes of an owner (None: of everybody), in batches."""
        ...

    def removed(self, subject: str) -> list[Ref]:
        """Deleted notes that last stood at a subject, with the version of their removal."""
        ...

    def forget(self, note_ids: Sequence[str]) -> None:
        """Drop the memory of deleted notes: the index has removed them."""
        ...

    def load(self, note_ids: Sequence[str]) -> list[Note]:
        """Those that exist, as they are now."""
        ...
