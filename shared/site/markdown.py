"""A Markdown file as a note: front matter, title, text.

Stands between the folder reader and the import. Front matter is the plain part of YAML that notes
really use (`key: value`, `[a, b]`, `- a` lines); what it cannot read it leaves in the text, and it
never fails. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shared.site.note import MAX_EXCERPT, MAX_LANG, MAX_TITLE

_FENCE = re.compile(r"[ ]{0,3}(```+|~~~+)")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$")
_PAIR = re.compile(r"([A-Za-z_][\w-]*):[ \t]*(.*)$")
_TRUE = frozenset({"true", "yes", "on", "1"})
Value = str | list[str]


@dataclass(frozen=True, slots=True)
class Page:
    """What a file says. Fields as a note's."""

    title: str
    body: str
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    css_classes: tuple[str, ...] = ()
    lang: str = ""
    excerpt: str = ""
    published: bool = False
    meta: Mapping[str, Value] = field(default_factory=dict)


def parse(text: str, fallback_title: str) -> Page:
    """Read a file's text.

    Args:
        text: decoded; a byte order mark and foreign line ends are mended.
        fallback_title: when neither front matter nor a heading names one (the file's name).
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    meta, body = _front_matter(lines)
    title = _text(meta, "title").strip() or next(_headings(body), "") or fallback_title
    return Page(
        title=title[:MAX_TITLE],
        body="\n".join(body).strip("\n"),
        tags=_list(meta, "tags", "tag"),
        aliases=_list(meta, "aliases", "alias"),
        css_classes=_list(meta, "cssclasses", "css_classes"),
        lang=_text(meta, "lang")[:MAX_LANG],
        excerpt=(_text(meta, "excerpt") or _text(meta, "description"))[:MAX_EXCERPT],
        published=(_text(meta, "published") or _text(meta, "publish")).lower() in _TRUE,
        meta=meta,
    )


def _front_matter(lines: list[str]) -> tuple[dict[str, Value], list[str]]:
    if lines[0].rstrip() != "---":
        return {}, lines
    for end, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            return _pairs(lines[1:end]), lines[end + 1 :]
    return {}, lines


def _pairs(lines: list[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    key = ""
    for line in lines:
        if match := _PAIR.match(line):
            key = match[1].lower()
            found[key] = _value(match[2])
        elif key and line.lstrip().startswith("- "):
            items = found[key]
            kept = items if isinstance(items, list) else []
            found[key] = [*kept, _unquoted(line.lstrip()[2:])]
    return found


def _value(raw: str) -> Value:
    text = raw.strip()
    if text.startswith("[") and text.endswith("]"):
        return [item for item in map(_unquoted, text[1:-1].split(",")) if item]
    return _unquoted(text)


def _unquoted(raw: str) -> str:
    text = raw.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _text(meta: Mapping[str, Value], name: str) -> str:
    value = meta.get(name, "")
    return value if isinstance(value, str) else " ".join(value)


def _list(meta: Mapping[str, Value], *names: str) -> tuple[str, ...]:
    for name in names:
        value = meta.get(name)
        if value:
            items = value.replace(",", " ").split() if isinstance(value, str) else value
            return tuple(item.lstrip("#") for item in items)
    return ()


def _headings(lines: list[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and (match := _HEADING.match(line)):
            yield match[1].strip()
