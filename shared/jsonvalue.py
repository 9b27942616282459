"""What may be stored as JSON: job args, event data, results.

Used at every way in, before the database sees the value, so that a bad value is refused with a
sentence instead of an obscure failure inside the caller's commit. SQL repeats the rules that it
can see (`weirkeeper.check_object`); the limits are the same: a JSON object, at most 256 KiB,
nested at most 64 deep, finite numbers of at most 4,000 digits (Python reads back no more than
4,300), no NUL and no lone surrogate (Postgres stores neither).
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

from shared.errors import InvalidArguments

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_DIGITS = 4000
_TOO_LARGE = 10**MAX_DIGITS
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
# Texts, which are left alone; floats that jsonb would give back as something else.
_FLOATS = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d(?:\.\d+)?e\+\d+|-0\.0(?!\d))')


def encode_object(value: Any, what: str) -> str:
    """Check a JSON object and return its text.

    Args:
        value: the object; dict with string keys, holding dict, list, str, int, float, bool, None.
        what: how messages name it ("args of kind corpus.index").

    Raises:
        InvalidArguments: not an object, not JSON, too big, too deep.
    """
    if not isinstance(value, dict):
        raise InvalidArguments(
            f"{what}: expected a JSON object (a dict); got {type(value).__name__}; "
            "wrap the value in an object"
        )
    return encode_value(value, what, MAX_BYTES)


def encode_value(value: Any, what: str, most: int) -> str:
    """Check any JSON value and return its text.

    Args:
        value: dict with string keys, list, str, int, float, bool or None, nested as they may be.
        what: how messages name it ("result of kind corpus.index").
        most: bytes that its text may have.

    Raises:
        InvalidArguments: not JSON, too big, too deep.
    """
    _check(value, what, depth=1)
    text = _ENCODER.encode(value)
    if "e+" in text or "-0.0" in text:
        text = _FLOATS.sub(_as_stored, text)
    size = len(text.encode())
    if size > most:
        raise InvalidArguments(
            f"{what}: expected at most {most} bytes of JSON; got {size}; "
            "store the content elsewhere and pass its id"
        )
    return text


def _as_stored(found: re.Match[str]) -> str:
    """A float so that jsonb gives it back: 1e+23 would become an integer that no float equals."""
    number = found.group(1)
    if number is None:
        return found.group()
    return "0.0" if number == "-0.0" else f"{Decimal(number):f}.0"


def check_text(value: str | None, what: str, most: int) -> None:
    """Check a text that goes into a column of its own (owner, subject, trace).

    Args:
        value: the text; None passes.
        what: how messages name it ("subject of event order.paid").
        most: characters that it may have.

    Raises:
        InvalidArguments: no text, too long, NUL or a lone surrogate in it.
    """
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidArguments(
            f"{what}: expected text; got {type(value).__name__}; convert it to a string"
        )
    _check_text(value, what)
    if len(value) > most:
        raise InvalidArguments(
            f"{what}: expected at most {most} characters; got {len(value)}; pass an id instead"
        )


def _check(value: Any, what: str, depth: int) -> None:
    if isinstance(value, dict):
        _check_depth(what, depth)
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidArguments(
                    f"{what}: expected string keys; got {key!r}; convert the key to a string"
                )
            _check_text(key, what)
            _check(item, what, depth + 1)
    elif isinstance(value, list | tuple):
        _check_depth(what, depth)
        for item in value:
            _check(item, what, depth + 1)
    else:
        _check_scalar(value, what)


def _check_scalar(value: Any, what: str) -> None:
    if isinstance(value, str):
        _check_text(value, what)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArguments(
                f"{what}: expected finite numbers; got {value!r}; JSON has no NaN or Infinity"
            )
    elif isinstance(value, int):
        if not -_TOO_LARGE < value < _TOO_LARGE:
            raise InvalidArguments(
                f"{what}: expected numbers of at most {MAX_DIGITS} digits; got a longer one; "
                "pass it as a string"
            )
    elif value is not None:
        raise InvalidArguments(
            f"{what}: expected JSON values; got {type(value).__name__}; "
            "convert it to a string or a number"
        )


def _check_depth(what: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidArguments(
            f"{what}: expected at most {MAX_DEPTH} levels of nesting; got more; flatten the value"
        )


def _check_text(text: str, what: str) -> None:
    if "\x00" in text:
        raise InvalidArguments(
            f"{what}: expected text without NUL; got U+0000 in {text[:40]!r}; remove it"
        )
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidArguments(
            f"{what}: expected valid Unicode; got a lone surrogate in {text[:40]!r}; "
            "decode the text correctly first"
        )
