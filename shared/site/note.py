"""A note, as the site's use cases see it. Ids are strings; times stay in the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GENRES = ("raw", "wiki", "writing")
MAX_BODY = 1024 * 1024  # bytes, as the table checks
# Characters, as the table checks:
MAX_TITLE = 500
MAX_SLUG = 255
MAX_LANG = 35
MAX_EXCERPT = 2000
MAX_OWNER = 200

# What create and update may be given: every watched column.
FIELDS = (
    "genre",
    "title",
    "body",
    "tags",
    "parent_id",
    "published",
    "show_as_source",
    "aliases",
    "excerpt",
    "slug",
    "archived",
    "css_classes",
    "lang",
)

Changes = Mapping[str, Any]  # some of FIELDS, with their values


@dataclass(frozen=True, slots=True)
class Ref:
    """A note without its text: which one, where, in which version."""

    id: str
    version: int
    path: str


@dataclass(frozen=True, slots=True)
class Note:
    """What the index keeps of a note."""

    id: str
    version: int
    owner_id: str
    genre: str
    path: str
    title: str
    body: str
    excerpt: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    published: bool
    archived: bool


@dataclass(frozen=True, slots=True)
class Written:
    """A note as a write left it.

    Attributes:
        event_id: its latest event, recorded in the same transaction.
        changed: the write changed something that readers see.
    """

    id: str
    version: int
    path: str
    event_id: str
    changed: bool
