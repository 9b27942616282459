"""Ids of webhooks' rows as callers give them: text, which may be anything.

Apart from `rows`, which knows sealed headers and so loads cryptography.
"""

from __future__ import annotations


def number(given: str) -> int:
    """An id as the database has it; what cannot be one names nothing."""
    text = str(given)
    if not (len(text) <= 19 and text.isascii() and text.isdigit() and int(text) < 2**63):
        return -1
    return int(text)
