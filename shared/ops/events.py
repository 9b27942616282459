"""Operations on events: look at the log, requeue what failed, replay to a subscriber, try globs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shared.errors import InvalidArguments
from shared.events.globs import matches
from shared.events.log import Filter, Recorded, Replay, Span, Type
from shared.events.subscriptions import is_glob
from shared.jobs.port import JobFilter
from shared.ops.desk import Desk
from shared.ops.operation import Operation

MAX_PAGE = 500
MAX_LOOK = 10_000  # events of a dry run


class List(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of events.list. `type`: a glob. `before`: the last id of the page before."""

    type: str | None = None
    subject: str | None = None
    owner_id: str | None = None
    state: str | None = None
    limit: int = 50
    before: str | None = None


class One(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of what is about one event or one replay."""

    id: str


class Requeue(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of events.requeue: one event, or every poisoned one."""

    id: str | None = None
    all: bool = False


class Skipped(msgspec.Struct):
    """The event that was given up."""

    id: str


class Replaying(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of events.replay. `type`: a glob. `confirm`: the number of events of the plan."""

    subscriber: str
    since: str
    until: str
    type: str = "*"
    confirm: int | None = None


class Page(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of events.replays."""

    limit: int = 20


class Dry(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of events.dry_run. `types`: globs of a subscriber that does not exist yet."""

    types: list[str] | None = None
    limit: int = 100


class Nothing(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """No arguments."""


class Requeued(msgspec.Struct):
    """How many events the relay will try again."""

    events: int


class Plan(msgspec.Struct):
    """What a replay would deliver, or, once it is confirmed, the replay.

    Nothing has happened while `replay` is null: call again with `confirm` = `events`.
    """

    subscriber: str
    types: list[str]
    since: str
    until: str
    events: int
    replay: Replay | None


class Cancelled(msgspec.Struct):
    """A replay that was ended, and how many of its jobs were cancelled before they ran."""

    replay: Replay
    jobs: int


class Reach(msgspec.Struct):
    """Whom the last events of one type would have reached."""

    type: str
    events: int
    subscribers: list[str]
    endpoints: list[str]


def list_events(desk: Desk, arguments: List) -> Sequence[Recorded]:
    """List events without their data."""
    if not 1 <= arguments.limit <= MAX_PAGE:
        raise InvalidArguments(f"limit: expected 1 to {MAX_PAGE}; got {arguments.limit}")
    wanted = Filter(
        types=None if arguments.type is None else _expanded(desk, "type", arguments.type),
        subject=arguments.subject,
        owner_id=arguments.owner_id,
        state=arguments.state,
    )
    return desk.events.list(wanted, limit=arguments.limit, before=arguments.before)


def get_event(desk: Desk, arguments: One) -> Recorded:
    """One event with its data, the relay's last error and each subscriber's job."""
    return desk.events.get(arguments.id)


def requeue(desk: Desk, arguments: Requeue) -> Requeued:
    """Have the relay try again what it could not fan out."""
    if (arguments.id is None) != arguments.all:
        raise InvalidArguments(
            "id: expected one event, or that all poisoned ones are meant; got both or none; "
            "name exactly one"
        )
    if arguments.id is None:
        return Requeued(desk.events.requeue_poisoned())
    desk.events.requeue(arguments.id)
    return Requeued(1)


def skip(desk: Desk, arguments: One) -> Skipped:
    """Give up an event that the relay could not fan out."""
    desk.events.skip(arguments.id)
    return Skipped(arguments.id)


def replay(desk: Desk, arguments: Replaying) -> Plan:
    """Plan a replay; begin it when the number of its events is confirmed."""
    types = _expanded(desk, "type", arguments.type)
    span = Span(arguments.subscriber, types, arguments.since, arguments.until)
    begun = None
    if arguments.confirm is None:
        events = desk.events.plan(span)
    else:
        begun = desk.events.replay(span, arguments.confirm, desk.owner_id)
        events = begun.events
    return Plan(arguments.subscriber, types, arguments.since, arguments.until, events, begun)


def replays(desk: Desk, arguments: Page) -> Sequence[Replay]:
    """The last replays and how far they are."""
    if not 1 <= arguments.limit <= MAX_PAGE:
        raise InvalidArguments(f"limit: expected 1 to {MAX_PAGE}; got {arguments.limit}")
    return desk.events.replays(arguments.limit)


def replay_status(desk: Desk, arguments: One) -> Replay:
    """How far a replay is."""
    return desk.events.replay_status(arguments.id)


def replay_cancel(desk: Desk, arguments: One) -> Cancelled:
    """End a replay, and the jobs of it that have not begun."""
    ended = desk.events.cancel_replay(arguments.id)
    jobs = 0
    if ended.state == "cancelled":
        tag = f"replay:{ended.id}"
        wanted = JobFilter(kind=ended.subscription, tag=tag, state="pending")
        jobs = desk.inspector.cancel_many(wanted, told=desk.told)
    return Cancelled(ended, jobs)


def types(desk: Desk, _: Nothing) -> Sequence[Type]:
    """Every type that may be recorded, and who wants it."""
    return desk.events.types()


def dry_run(desk: Desk, arguments: Dry) -> list[Reach]:
    """Whom the last events would have reached; with globs: a subscriber of those."""
    if not 1 <= arguments.limit <= MAX_LOOK:
        raise InvalidArguments(f"limit: expected 1 to {MAX_LOOK}; got {arguments.limit}")
    wanted: list[str] | None = None
    if arguments.types is not None:
        wanted = sorted({name for g in arguments.types for name in _expanded(desk, "types", g)})
    counts = desk.events.last(arguments.limit)
    subscribers = {t.name: list(t.subscriptions) for t in desk.events.types()}
    endpoints = desk.endpoints.wanting(desk.owner_id, list(counts))
    return [
        Reach(name, number, subscribers.get(name, []), list(endpoints.get(name, ())))
        for name, number in sorted(counts.items())
        if wanted is None or name in wanted
    ]


def _expanded(desk: Desk, what: str, glob: str) -> list[str]:
    """Declared types that a glob matches.

    Raises:
        InvalidArguments: no glob, or one that matches nothing.
    """
    found = [t.name for t in desk.events.types() if is_glob(glob) and matches(glob, t.name)]
    if not found:
        raise InvalidArguments(
            f"{what}: expected a glob that matches a declared event type; got {glob[:80]!r}; "
            "events.types lists them"
        )
    return found


OPERATIONS = (
    Operation(
        "events.list",
        "List events: first what waits for its fan-out, then the last that were fanned out.",
        List,
        list[Recorded],
        list_events,
    ),
    Operation(
        "events.get",
        "Show an event with its data, the relay's last error and the job of each subscriber.",
        One,
        Recorded,
        get_event,
    ),
    Operation(
        "events.requeue",
        "Have the relay try again what it could not fan out: one event, or all that are poisoned.",
        Requeue,
        Requeued,
        requeue,
        writes=True,
    ),
    Operation(
        "events.skip",
        "Give up an event that the relay could not fan out: no subscriber gets it.",
        One,
        Skipped,
        skip,
        writes=True,
    ),
    Operation(
        "events.replay",
        "Plan a second delivery to a subscriber; begin it once the plan's number is confirmed.",
        Replaying,
        Plan,
        replay,
        writes=True,
    ),
    Operation(
        "events.replays", "List the last replays and how far they are.", Page, list[Replay], replays
    ),
    Operation("events.replay_status", "Tell how far a replay is.", One, Replay, replay_status),
    Operation(
        "events.replay_cancel",
        "End a replay, and those of its jobs that have not begun.",
        One,
        Cancelled,
        replay_cancel,
        writes=True,
    ),
    Operation(
        "events.types", "List the types that may be recorded, and who wants them.", Nothing,
        list[Type], types,
    ),
    Operation(
        "events.dry_run",
        "Tell which subscribers and endpoints the last events would have reached.",
        Dry,
        list[Reach],
        dry_run,
    ),
)  # fmt: skip
