"""Operations on jobs: list them, look at one."""

from __future__ import annotations

import msgspec

from shared.errors import InvalidArguments
from shared.jobs.port import Job, JobFilter
from shared.jobs.states import STATES
from shared.ops.desk import Desk
from shared.ops.operation import Operation

MAX_PAGE = 500


class List(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of tasks.list. `before`: only jobs older than this id (the next page)."""

    kind: str | None = None
    state: str | None = None
    limit: int = 50
    before: str | None = None


class Get(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of tasks.get."""

    id: str


def list_jobs(desk: Desk, arguments: List) -> list[Job]:
    """List jobs, newest first, without their args."""
    if arguments.state is not None and arguments.state not in STATES:
        raise InvalidArguments(
            f"state: expected one of {', '.join(STATES)}; got {arguments.state!r}"
        )
    if not 1 <= arguments.limit <= MAX_PAGE:
        raise InvalidArguments(f"limit: expected 1 to {MAX_PAGE}; got {arguments.limit}")
    return desk.inspector.list(
        JobFilter(kind=arguments.kind, state=arguments.state),
        limit=arguments.limit,
        before=arguments.before,
    )


def get_job(desk: Desk, arguments: Get) -> Job:
    """One job with its args and every attempt."""
    return desk.inspector.get(arguments.id)


OPERATIONS = (
    Operation("tasks.list", "List jobs, newest first.", List, list[Job], list_jobs),
    Operation("tasks.get", "Show a job with every attempt.", Get, Job, get_job),
)
