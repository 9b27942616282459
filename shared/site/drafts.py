"""What an import carries: notes to be, places of the folder, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Draft:
    """A note to be, by its name (slug) under its parent. `folder` = only that it is there."""

    slug: str
    parent_id: str | None
    title: str
    body: str = ""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    css_classes: tuple[str, ...] = ()
    lang: str = ""
    excerpt: str = ""
    published: bool = False
    folder: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One place of the folder: names from its root, and the file's draft (None: a folder)."""

    parts: tuple[str, ...]
    draft: Draft | None


@dataclass(frozen=True, slots=True)
class Arrived:
    """A note that an import wrote or left: `how` is created, updated or unchanged."""

    id: str
    parent_id: str | None
    slug: str
    event_id: str
    how: str
