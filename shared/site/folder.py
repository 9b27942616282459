"""A folder of Markdown as drafts of notes: reads files, decides nothing about notes that exist.

Stands before the import. A file that cannot be a note (not UTF-8, NUL, too big, unreadable) is
reported and skipped; it never keeps another from being read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from shared.errors import NotFound
from shared.site.drafts import Draft, Item
from shared.site.markdown import parse
from shared.site.note import MAX_BODY

SUFFIXES = (".md", ".markdown")
Complain = Callable[[str], None]


def read_folder(folder: Path, complain: Complain) -> list[Item]:
    """Everything to import, folders before what is in them.

    Args:
        folder: or a single file.
        complain: called with one line for each file that is skipped.

    Raises:
        NotFound: there is nothing at that path.
    """
    if not folder.exists():
        raise NotFound(f"notes: expected a folder or a file; got {str(folder)!r}; nothing is there")
    base = folder if folder.is_dir() else folder.parent
    found: dict[tuple[str, ...], Item] = {}
    for file in _files(folder, complain):
        path = file.relative_to(base)
        parts = (*path.parent.parts, path.stem)
        if parts in found:
            complain(f"{path}: skipped: another file has the same name; rename one of them")
        elif draft := _draft(file, path, complain):
            found[parts] = Item(parts, draft)
    for parts in list(found):
        for depth in range(1, len(parts)):
            found.setdefault(parts[:depth], Item(parts[:depth], None))
    return sorted(found.values(), key=lambda item: (len(item.parts), item.parts))


def _files(folder: Path, complain: Complain) -> Iterator[Path]:
    if not folder.is_dir():
        yield folder
        return

    def unreadable(error: OSError) -> None:
        complain(f"{error.filename}: skipped: {error.strerror}")

    for root, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(root, name)


def _draft(file: Path, shown: Path, complain: Complain) -> Draft | None:
    try:
        return _read(file)
    except UnicodeError:
        reason = "expected UTF-8 text and name; got other bytes"
    except ValueError as error:
        reason = str(error)
    except OSError as error:
        reason = str(error.strerror)
    complain(f"{os.fsencode(shown).decode(errors='replace')}: skipped: {reason}")
    return None


def _read(file: Path) -> Draft:
    os.fspath(file).encode()  # a name that is not UTF-8 cannot be a slug
    if not file.is_file():
        raise ValueError("expected a regular file")
    if (size := file.stat().st_size) > MAX_BODY:
        raise ValueError(f"expected at most {MAX_BODY:,} bytes; got {size:,}")
    text = file.read_bytes().decode()
    if "\x00" in text:
        raise ValueError("expected text; got NUL bytes")
    page = parse(text, file.stem)
    return Draft(
        slug=file.stem,
        parent_id=None,
        title=page.title,
        body=page.body,
        tags=page.tags,
        aliases=page.aliases,
        css_classes=page.css_classes,
        lang=page.lang,
        excerpt=page.excerpt,
        published=page.published,
    )
