"""Finding jobs by a filter, newest first, without ever reading far at once.

Part of shared.postgres.inspection.inspector. A page is found in windows over the table that a state
stands for, by its index on the job's id: each statement looks at a bounded number of rows, whatever
the history and however few of them fit. Args of rows that are not shown are only read when the
filter names some, and then of rows that fit otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, LiteralString

from shared.jobs.inspect import JobFilter
from shared.jobs.lookups import check_filter, check_searchable, filter_args, moment
from shared.jobs.states import CANCELLED, COMPLETED, DISCARDED, PENDING, RETRYABLE, RUNNING
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.looks import bounded
from shared.postgres.driver.statements import statement

WINDOW = 20_000  # rows that one statement looks at
WINDOW_ARGS = 2_000  # likewise when args are to be compared
FAR = 100  # windows that a list looks through
_END = 2**63 - 1


class Pages:
    """Ids of jobs, page by page.

    Args:
        conn: in autocommit mode.
    """

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def of(self, wanted: JobFilter, below: int | None, limit: int) -> Iterator[Sequence[int]]:
        """Ids of jobs that fit, newest first, one window after the other.

        Args:
            wanted: which.
            below: only ids below this one; None = all.
            limit: at most so many at a time.

        Raises:
            InvalidArguments: a filter that makes no sense.
            DatabaseUnavailable: not now.
        """
        params = self._parameters(wanted)
        before: int | None = _END if below is None else below
        while before is not None:
            ids, before = self._window(wanted.state, {**params, "before": before, "limit": limit})
            yield ids

    def _window(
        self, state: str | None, params: Mapping[str, Any]
    ) -> tuple[Sequence[int], int | None]:
        """Ids within one window, and where the next begins; None = there is none."""
        with bounded(self._conn):
            ids = self._ids(_candidates(state), params)
            if len(ids) == params["limit"]:
                return ids, ids[-1]
            edge = _edge(state)
            last = [] if edge is None else self._ids(edge, params)
        return ids, last[0] if last else None

    def _ids(self, text: LiteralString, params: Mapping[str, Any]) -> Sequence[int]:
        rows: Sequence[Any] = self._conn.execute(text, params).fetchall()
        return [row[0] for row in rows]

    def check(self, wanted: JobFilter) -> None:
        """Refuse a filter that cannot be answered, whatever state it names."""
        check_filter(wanted)
        self._args(wanted)

    def _parameters(self, wanted: JobFilter) -> dict[str, Any]:
        check_filter(wanted)
        return {
            "kind": wanted.kind,
            "queue": wanted.queue,
            "state": wanted.state,
            "owner_id": wanted.owner_id,
            "tag": wanted.tag,
            "args": self._args(wanted),
            "after": moment("created_after", wanted.created_after),
            "until": moment("created_before", wanted.created_before),
            "tried": wanted.state == RETRYABLE,
            "completed": wanted.state == COMPLETED,
            "window": WINDOW if wanted.args is None else WINDOW_ARGS,
        }

    def _args(self, wanted: JobFilter) -> str | None:
        if wanted.args is None:
            return None
        with bounded(self._conn):
            row: Any = self._conn.execute(
                statement("inspector/searchable"), {"kind": wanted.kind}
            ).fetchone()
        check_searchable(wanted, row[0] if row else ())
        return filter_args(wanted.args)


def _candidates(state: str | None) -> LiteralString:
    if state in (PENDING, RETRYABLE):
        return statement("inspector/waiting")
    if state == RUNNING:
        return statement("inspector/running")
    if state in (DISCARDED, CANCELLED):
        return statement("inspector/ended")
    return statement("inspector/newest")


def _edge(state: str | None) -> LiteralString | None:
    if state in (PENDING, RETRYABLE):
        return statement("inspector/waiting_edge")
    if state == RUNNING:
        return None
    if state in (DISCARDED, CANCELLED):
        return statement("inspector/ended_edge")
    return statement("inspector/newest_edge")
