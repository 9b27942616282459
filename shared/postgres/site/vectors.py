"""Text of `tsvector` and `tsquery` values, made from the site's own words. Pure.

Stands between shared.site.words and the search adapter. Lexemes hold letters, digits and marks
only, so nothing in them needs an escape. Keeps within what a tsvector can hold (1 MiB, positions
up to 16,383): of a huge note the first part is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shared.site.note import Note
from shared.site.words import Term, lexemes

MAX_VECTOR = 900_000  # bytes, of 1,048,575
MAX_POSITION = 16_383
MAX_POSITIONS = 64  # of one lexeme; Postgres keeps 255
GAP = 8  # positions between fields: neighbours never span two
Lexemes = Mapping[str, Sequence[str]]  # lexeme → positions with weights, "12A"


def lexemes_of(note: Note) -> Lexemes:
    """Every lexeme of a note: title A, tags, aliases and path B, excerpt C, text D."""
    found: dict[str, list[str]] = {}
    size, position = 0, 0
    for text, weight in _fields(note):
        for lexeme in lexemes(text):
            position = min(position + 1, MAX_POSITION)
            places = found.get(lexeme)
            if places is None:
                size += len(lexeme.encode()) + 4
                places = found[lexeme] = []
            if len(places) < MAX_POSITIONS:
                places.append(f"{position}{weight}")
                size += 2
            if size > MAX_VECTOR:
                return found
        position += GAP
    return found


def vector_of(found: Lexemes) -> str:
    """The text of a tsvector."""
    return " ".join(f"'{lexeme}':{','.join(places)}" for lexeme, places in found.items())


def vocabulary(all_found: Iterable[Lexemes]) -> set[str]:
    """Words worth finding by a typo: letters of a script with spaces, 4 to 24 of them."""
    return {
        word for found in all_found for word in found if 4 <= len(word) <= 24 and word.isalpha()
    }


def query_of(asked: Sequence[Term], similar: Mapping[str, Sequence[str]]) -> str:
    """The text of a tsquery: every term; a word by its beginning, or one of its likenesses."""
    return " & ".join(_asked(term, similar.get(term.text, ())) for term in asked)


def alternatives(asked: Sequence[Term], similar: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What a snippet is looked for by."""
    for term in asked:
        yield term.text
        yield from similar.get(term.text, ())


def _asked(term: Term, similar: Sequence[str]) -> str:
    if len(term.lexemes) > 1:
        return "(" + " <-> ".join(f"'{pair}'" for pair in term.lexemes) + ")"
    word = term.lexemes[0]
    prefix = ":*" if len(word) > 1 or not term.spaced else ""
    return "(" + " | ".join([f"'{word}'{prefix}", *(f"'{other}'" for other in similar)]) + ")"


def _fields(note: Note) -> Iterator[tuple[str, str]]:
    yield note.title, "A"
    for text in (*note.tags, *note.aliases, note.path):
        yield text, "B"
    yield note.excerpt, "C"
    yield note.body, "D"
