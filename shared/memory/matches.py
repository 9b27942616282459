"""Which jobs a filter names. The rules are those of shared.jobs.inspect.JobFilter."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shared.app import App
from shared.errors import InvalidArguments
from shared.jobs.inspect import JobFilter
from shared.jobs.states import STATES
from shared.memory.rows import Row


def check_filter(app: App, wanted: JobFilter) -> None:
    """Refuse a filter that cannot be answered.

    Raises:
        InvalidArguments: a state that is none, args that the kind does not declare, no moment.
    """
    if wanted.state is not None and wanted.state not in STATES:
        raise InvalidArguments(f"state: expected one of {', '.join(STATES)}; got {wanted.state!r}")
    for what in ("created_after", "created_before"):
        if getattr(wanted, what) is not None:
            moment(what, getattr(wanted, what))
    if wanted.args is None:
        return
    kind = app.all_kinds.get(wanted.kind or "")
    searchable = () if kind is None else kind.searchable
    if kind is None or not set(wanted.args) <= set(searchable):
        raise InvalidArguments(
            f"args: expected a kind and keys that it declares as searchable "
            f"({', '.join(searchable) or 'none'}); got {wanted.kind} and {sorted(wanted.args)}; "
            "add them to the kind"
        )


def matches(row: Row, wanted: JobFilter) -> bool:
    """Whether a job is one of those."""
    given = (
        (wanted.kind, row.kind.name),
        (wanted.queue, row.kind.queue),
        (wanted.state, row.state),
        (wanted.owner_id, row.opts.owner_id),
    )
    if any(want is not None and want != has for want, has in given):
        return False
    if wanted.tag is not None and wanted.tag not in row.opts.tags:
        return False
    if wanted.created_after and row.created_at < moment("created_after", wanted.created_after):
        return False
    if wanted.created_before and row.created_at >= moment("created_before", wanted.created_before):
        return False
    return wanted.args is None or contains(row.args, dict(wanted.args))


def contains(whole: Any, part: Any) -> bool:
    """Containment as jsonb has it: every key, every element, anywhere in its list."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list | tuple):
        return isinstance(whole, list) and all(
            any(contains(has, value) for has in whole) for value in part
        )
    return isinstance(whole, bool) == isinstance(part, bool) and bool(whole == part)


def moment(what: str, text: str) -> datetime:
    """A moment out of a filter.

    Raises:
        InvalidArguments: no ISO 8601, or no time zone.
    """
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        read = None
    if read is None or read.tzinfo is None:
        raise InvalidArguments(
            f"{what}: expected an ISO 8601 moment with a time zone; got {text[:40]!r}; add Z"
        )
    return read
