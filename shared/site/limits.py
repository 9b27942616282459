"""What a note may hold, checked before anything reaches the database.

Used by the use cases and by whatever keeps the notes; the table's own checks stand behind, for
other writers. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.errors import InvalidArguments
from shared.site.drafts import Draft
from shared.site.note import (
    FIELDS,
    GENRES,
    MAX_BODY,
    MAX_EXCERPT,
    MAX_LANG,
    MAX_OWNER,
    MAX_SLUG,
    MAX_TITLE,
    Changes,
)

_LONGEST = {"title": MAX_TITLE, "slug": MAX_SLUG, "lang": MAX_LANG, "excerpt": MAX_EXCERPT}
_LISTS = ("tags", "aliases", "css_classes")


def check_owner(owner_id: str) -> None:
    """Refuse an owner that no note can have.

    Raises:
        InvalidArguments: no name, too long a name, or no text.
    """
    _check_text("owner", owner_id)
    if not 1 <= len(owner_id) <= MAX_OWNER:
        raise InvalidArguments(
            f"owner: expected 1 to {MAX_OWNER} characters; got {len(owner_id)}; name another"
        )


def check_fields(fields: Changes) -> None:
    """Refuse what somebody gives for a note, if no note can have it.

    Raises:
        InvalidArguments: an unknown field, a blank title, a text that is too long or none.
    """
    for name, value in fields.items():
        if name not in FIELDS:
            raise InvalidArguments(f"note: expected {', '.join(FIELDS)}; got {name!r}")
        _check_value(name, value)
    title = fields.get("title")
    if isinstance(title, str) and not title.strip():
        raise InvalidArguments(
            f"title: expected 1 to {MAX_TITLE} characters; got {title!r}; give it a name"
        )
    genre = fields.get("genre", GENRES[0])
    if genre not in GENRES:
        raise InvalidArguments(f"genre: expected {', '.join(GENRES)}; got {genre!r}")


def check_drafts(drafts: Iterable[Draft]) -> None:
    """Refuse drafts of which one cannot become a note.

    Raises:
        InvalidArguments: a text that is too long or none.
    """
    for draft in drafts:
        for name in ("body", *_LONGEST, *_LISTS):
            _check_value(name, getattr(draft, name))


def _check_value(name: str, value: object) -> None:
    for text in value if isinstance(value, list | tuple) else (value,):
        if isinstance(text, str):
            _check_text(name, text)
            _check_length(name, text)


def _check_length(name: str, text: str) -> None:
    if name in _LONGEST and len(text) > _LONGEST[name]:
        raise InvalidArguments(
            f"{name}: expected at most {_LONGEST[name]:,} characters; got {len(text):,}; shorten it"
        )
    if name == "body" and (size := len(text.encode())) > MAX_BODY:
        raise InvalidArguments(
            f"body: expected at most {MAX_BODY:,} bytes; got {size:,}; make several notes of it"
        )


def _check_text(name: str, text: str) -> None:
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidArguments(
            f"{name}: expected valid Unicode without NUL; got {text[:40]!r}; mend the text"
        )
