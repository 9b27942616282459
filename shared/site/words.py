"""Words as the search index keeps them: the same in every locale, for every script.

Stands between a note's text and the index, and between a query and the index: both are folded and
cut by the same functions, so that what was written can be found. Text without spaces between
words (Chinese, Japanese, Korean, Thai, …) becomes pairs of neighbouring characters. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

MAX_WORD = 64  # characters of one lexeme
_ACCENTS = re.compile("[\u0300-\u036f]")
# Scripts written without spaces; Hangul too, whose words end in particles.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
)
# Vowel signs and marks inside words, which \w leaves out.
_MARKS = (
    "\u0483-\u0487\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06ed\u0900-\u0963\u0966-\u0dff"
)


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that a query asks for.

    Attributes:
        text: as the query has it, folded.
        lexemes: one word, or the pairs of a run without spaces, neighbours in this order.
        spaced: a word of a script with spaces between words: typos are looked for.
    """

    text: str
    lexemes: tuple[str, ...]
    spaced: bool


def fold(text: str) -> str:
    """One form for what readers take for the same: case, accents, full width."""
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", plain).casefold()


def runs(text: str) -> Iterator[tuple[str, bool]]:
    """Cut folded text into (run, spaced): words, or stretches of a script without spaces."""
    for match in _pattern().finditer(fold(text)):
        yield match[0], match.lastgroup == "spaced"


def lexemes(text: str) -> Iterator[str]:
    """What the index keeps of a text, in order.

    The last character of a stretch without spaces stands alone too, so that a single character
    is always the beginning of some lexeme.
    """
    for run, spaced in runs(text):
        if spaced:
            yield run[:MAX_WORD]
        else:
            yield from pairs(run)
            yield run[-1]


def pairs(run: str) -> Iterator[str]:
    """Neighbouring characters, two by two."""
    return (run[i : i + 2] for i in range(len(run) - 1))


def terms(query: str, limit: int = 16) -> Sequence[Term]:
    """What a query asks for; signs and operators in it mean nothing. At most `limit` terms."""
    found: list[Term] = []
    for run, spaced in runs(query):
        if len(found) == limit:
            break
        word = run[:MAX_WORD]
        parts = (word,) if spaced or len(word) == 1 else tuple(pairs(word))
        found.append(Term(word, parts, spaced))
    return found


@cache
def _pattern() -> re.Pattern[str]:
    letters, marks = f"[^\\W_{_UNSPACED}]", f"[{_MARKS}]"
    return re.compile(f"(?P<unspaced>[{_UNSPACED}]+)|(?P<spaced>(?:{letters}+|{marks}+)+)")
