"""The two channels that callers wait on, and the strict reading of what comes over them.

A payload is a list of ids joined by ',', at most 100 of them. It is a hint that anybody with
access to the database can forge: what does not look like an id is ignored, and an id that was
named is looked up, never believed. The names are those of an installation in the default schema;
the adapter hears another's own channels, and calls them by these names.
"""

from __future__ import annotations

import re
from typing import LiteralString

FINAL: LiteralString = "weirkeeper_final"  # job ids, sent inside the transaction that finished them
FANOUT: LiteralString = "weirkeeper_fanout"  # event ids, sent after the relay's commit
CHANNELS = (FINAL, FANOUT)
LABELS = {FINAL: "final", FANOUT: "fanout"}  # how metrics call them

_JOB_ID = re.compile(r"[0-9]{1,19}", re.ASCII)
_EVENT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_SHAPES = {FINAL: _JOB_ID, FANOUT: _EVENT_ID}
_LARGEST = 2**63 - 1


def ids_in(channel: str, payload: str) -> list[str]:
    """The ids that a notice names, in their one form; [] for a channel or text that is none."""
    shape = _SHAPES.get(channel)
    if shape is None:
        return []
    parts = payload.split(",")
    return [part for part in parts if shape.fullmatch(part) and _fits(channel, part)]


def is_job_id(text: str) -> bool:
    """Whether a text can be the id of a job: a decimal number of 64 bits, without leading zeros."""
    return bool(_JOB_ID.fullmatch(text)) and _fits(FINAL, text)


def is_event_id(text: str) -> bool:
    """Whether a text can be the id of an event: a uuid in lower case, with dashes."""
    return bool(_EVENT_ID.fullmatch(text))


def _fits(channel: str, text: str) -> bool:
    return channel != FINAL or (text[0] != "0" and int(text) <= _LARGEST)
