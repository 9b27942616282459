"""Globs over event types: split on dots; `*` is one segment, as the last one one or more."""

from __future__ import annotations


def matches(glob: str, name: str) -> bool:
    """Say whether an event type's name matches a glob.

    Args:
        glob: dotted segments, each a word or `*`.
        name: an event type.
    """
    wanted, have = glob.split("."), name.split(".")
    if wanted[-1] == "*":
        if len(have) < len(wanted):
            return False
        return _each(wanted[:-1], have)
    return len(wanted) == len(have) and _each(wanted, have)


def _each(wanted: list[str], have: list[str]) -> bool:
    return all(w in ("*", h) for w, h in zip(wanted, have, strict=False))
