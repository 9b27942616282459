"""Which jobs a filter names. The rules are those of shared.jobs.inspect.JobFilter."""

from __future__ import annotations

from typing import Any

from shared.app import App
from shared.jobs.inspect import JobFilter
from shared.jobs.lookups import check_filter, check_searchable, moment
from shared.memory.rows import Row


def check(app: App, wanted: JobFilter) -> None:
    """Refuse a filter that cannot be answered.

    Raises:
        InvalidArguments: see shared.jobs.lookups.
    """
    check_filter(wanted)
    kind = app.all_kinds.get(wanted.kind or "")
    check_searchable(wanted, () if kind is None else kind.searchable)


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
    after = moment("created_after", wanted.created_after)
    before = moment("created_before", wanted.created_before)
    if (after and row.created_at < after) or (before and row.created_at >= before):
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
