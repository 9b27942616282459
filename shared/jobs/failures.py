"""How a failure is told: text that can be stored and read, and no longer than it helps.

Used by children (exceptions of handlers) and by the parent (what befell a child), before the
completer writes it. Postgres stores neither NUL nor lone surrogates.
"""

from __future__ import annotations

import re
import traceback

MAX_ERROR = 8 * 1024  # bytes
MAX_STACK = 8 * 1024
_FRAME = re.compile(r'^  File "(.+)", line (\d+)', re.MULTILINE)


def clean(text: str, limit: int = MAX_ERROR) -> str:
    """Make text storable: no NUL, no lone surrogate, at most `limit` bytes of UTF-8.

    A text that is too long loses its middle: the beginning says what, the end says where.
    """
    whole = text.replace("\x00", "\ufffd").encode("utf-8", "replace")
    if len(whole) <= limit:
        return whole.decode()
    cut = " … "
    half = (limit - len(cut.encode())) // 2
    return whole[:half].decode("utf-8", "ignore") + cut + whole[-half:].decode("utf-8", "ignore")


def describe(error: BaseException) -> str:
    """One line or a few: the error's type and message."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  (an error that cannot even be told must still be recorded)
        message = "(its message cannot be read)"
    name = type(error).__name__
    return clean(f"{name}: {message}" if message else name)


def place(told: str) -> str:
    """Where the error was raised, as file:line, from what `stack` told; "" when it tells no place.

    The last frame: of a chain of causes, that of the error which came out.
    """
    found = _FRAME.findall(told)
    return ":".join(found[-1]) if found else ""


def stack(error: BaseException) -> str:
    """The traceback, causes included."""
    try:
        lines = traceback.format_exception(error)
    except Exception:  # noqa: BLE001
        lines = traceback.format_tb(error.__traceback__)
    return clean("".join(lines), MAX_STACK)
