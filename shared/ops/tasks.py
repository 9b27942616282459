"""Operations on jobs: look, explain, retry, cancel, pause what runs them, run periodic ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shared.errors import InvalidArguments
from shared.jobs.inspect import Explanation, Job, JobFilter, Overview, PeriodicStatus
from shared.jobs.states import STATES
from shared.ops.desk import Desk
from shared.ops.operation import Operation

MAX_PAGE = 500


class Which(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which jobs; what is left out does not matter. `args` need a kind that declares their keys."""

    kind: str | None = None
    queue: str | None = None
    state: str | None = None
    owner_id: str | None = None
    tag: str | None = None
    args: dict[str, Any] | None = None
    created_after: str | None = None
    created_before: str | None = None

    def filter(self) -> JobFilter:
        """As the port has it.

        Raises:
            InvalidArguments: a state that is none.
        """
        if self.state is not None and self.state not in STATES:
            raise InvalidArguments(
                f"state: expected one of {', '.join(STATES)}; got {self.state!r}"
            )
        names = (field.name for field in msgspec.structs.fields(Which))
        return JobFilter(**{name: getattr(self, name) for name in names})


class List(Which, forbid_unknown_fields=True, kw_only=True):
    """Arguments of tasks.list. `before`: only jobs older than this id (the next page)."""

    limit: int = 50
    before: str | None = None


class Many(Which, forbid_unknown_fields=True, kw_only=True):
    """Arguments of tasks.retry_all and tasks.cancel_all. `all`: meant, though nothing is named."""

    all: bool = False

    def meant(self) -> JobFilter:
        """The filter.

        Raises:
            InvalidArguments: it names nothing, and `all` does not say that this is meant.
        """
        wanted = self.filter()
        if wanted == JobFilter() and not self.all:
            raise InvalidArguments(
                "filter: expected something that the jobs have in common; got nothing; "
                "name a kind, queue, tag …, or say that all are meant"
            )
        return wanted


class One(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of what is about one job."""

    id: str


class Kinds(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of tasks.overview: one kind, or every declared one."""

    kind: str | None = None


class Lane(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of tasks.pause and tasks.resume: exactly one of the two."""

    queue: str | None = None
    kind: str | None = None


class Nothing(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """No arguments."""


class Named(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of tasks.run_periodic."""

    name: str


class Started(msgspec.Struct):
    """The job that an extra run is."""

    id: str


class Standing(msgspec.Struct):
    """A job's state after it was retried or cancelled; running: it is being stopped."""

    id: str
    state: str


class Number(msgspec.Struct):
    """How many jobs were retried or cancelled."""

    jobs: int


class Paused(msgspec.Struct):
    """What is paused now, or is not any more."""

    queue: str | None
    kind: str | None
    paused: bool


def overview(desk: Desk, arguments: Kinds) -> Sequence[Overview]:
    """How kinds stand."""
    return desk.inspector.overview(arguments.kind)


def list_jobs(desk: Desk, arguments: List) -> list[Job]:
    """List jobs, newest first, without their args."""
    if not 1 <= arguments.limit <= MAX_PAGE:
        raise InvalidArguments(f"limit: expected 1 to {MAX_PAGE}; got {arguments.limit}")
    wanted = arguments.filter()
    return desk.inspector.list(wanted, limit=arguments.limit, before=arguments.before)


def get_job(desk: Desk, arguments: One) -> Job:
    """One job with its args and every attempt."""
    return desk.inspector.get(arguments.id)


def explain(desk: Desk, arguments: One) -> Explanation:
    """Why a job stands where it stands."""
    return desk.inspector.explain(arguments.id)


def retry(desk: Desk, arguments: One) -> Standing:
    """Run a job once more."""
    return _standing(arguments.id, desk.inspector.retry(arguments.id))


def cancel(desk: Desk, arguments: One) -> Standing:
    """End a job."""
    return _standing(arguments.id, desk.inspector.cancel(arguments.id))


def _standing(job_id: str, state: str) -> Standing:
    """A job that was found, by the id that it has: what was asked for may begin with zeros."""
    return Standing(str(int(job_id)), state)


def retry_all(desk: Desk, arguments: Many) -> Number:
    """Retry every job that fits."""
    wanted = arguments.meant()
    return Number(desk.inspector.retry_many(wanted, told=desk.told))


def cancel_all(desk: Desk, arguments: Many) -> Number:
    """Cancel every job that fits."""
    wanted = arguments.meant()
    return Number(desk.inspector.cancel_many(wanted, told=desk.told))


def pause(desk: Desk, arguments: Lane) -> Paused:
    """Start no more jobs of a queue or kind."""
    desk.inspector.pause(queue=arguments.queue, kind=arguments.kind)
    return Paused(arguments.queue, arguments.kind, paused=True)


def resume(desk: Desk, arguments: Lane) -> Paused:
    """Start them again."""
    desk.inspector.resume(queue=arguments.queue, kind=arguments.kind)
    return Paused(arguments.queue, arguments.kind, paused=False)


def periodic(desk: Desk, _: Nothing) -> Sequence[PeriodicStatus]:
    """How the periodic jobs go."""
    return desk.inspector.periodic()


def run_periodic(desk: Desk, arguments: Named) -> Started:
    """Enqueue an extra run of a periodic job."""
    return Started(desk.inspector.run_periodic(arguments.name))


OPERATIONS = (
    Operation(
        "tasks.overview",
        "Count jobs by kind and state; tell how long the oldest has waited.",
        Kinds,
        list[Overview],
        overview,
    ),
    Operation("tasks.list", "List jobs, newest first.", List, list[Job], list_jobs),
    Operation("tasks.get", "Show a job with every attempt.", One, Job, get_job),
    Operation("tasks.explain", "Tell why a job stands where it stands.", One, Explanation, explain),
    Operation(
        "tasks.retry",
        "Run a discarded, cancelled or scheduled job once more, at once.",
        One,
        Standing,
        retry,
        writes=True,
    ),
    Operation("tasks.cancel", "End a job; stop it if it runs.", One, Standing, cancel, writes=True),
    Operation(
        "tasks.retry_all",
        "Retry every discarded and cancelled job that fits.",
        Many,
        Number,
        retry_all,
        writes=True,
    ),
    Operation(
        "tasks.cancel_all",
        "Cancel every waiting and running job that fits.",
        Many,
        Number,
        cancel_all,
        writes=True,
    ),
    Operation(
        "tasks.pause", "Start no more jobs of a queue or kind.", Lane, Paused, pause, writes=True
    ),
    Operation(
        "tasks.resume", "Start jobs of a queue or kind again.", Lane, Paused, resume, writes=True
    ),
    Operation(
        "tasks.periodic",
        "Show periodic jobs: the next tick, the last starts and how they went.",
        Nothing,
        list[PeriodicStatus],
        periodic,
    ),
    Operation(
        "tasks.run_periodic",
        "Run a periodic job now, beside its schedule.",
        Named,
        Started,
        run_periodic,
        writes=True,
    ),
)
