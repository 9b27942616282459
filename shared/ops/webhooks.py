"""Operations on webhooks: endpoints, their secrets, what was sent, and sending it once more.

Each names the owner who calls; what is another's is answered as if it were not there.
"""

from __future__ import annotations

import msgspec

from shared.ops.desk import Desk
from shared.ops.operation import Operation
from shared.webhooks.endpoint import OVERLAP, Draft
from shared.webhooks.records import (
    Attempt,
    Created,
    Delivery,
    Endpoint,
    Missed,
    Replay,
    Told,
)


class Nothing(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """No arguments."""


class One(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of what is about one endpoint."""

    id: str


class Create(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of webhooks.create.

    `contact`: a mail address; `rate`: requests a minute; `schedule`: seconds.
    """

    url: str
    event_types: list[str]
    description: str = ""
    headers: dict[str, str] = {}
    contact: str | None = None
    format: str = "standard"
    signature: str = "v1"
    ordering: str = "none"
    rate: int | None = None
    schedule: list[float] | None = None


class Update(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of webhooks.update: what is left out stays as it is; null takes it away."""

    id: str
    url: str | msgspec.UnsetType = msgspec.UNSET
    event_types: list[str] | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    headers: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    contact: str | msgspec.UnsetType | None = msgspec.UNSET
    format: str | msgspec.UnsetType = msgspec.UNSET
    ordering: str | msgspec.UnsetType = msgspec.UNSET
    rate: int | msgspec.UnsetType | None = msgspec.UNSET
    schedule: list[float] | msgspec.UnsetType | None = msgspec.UNSET


class Rotate(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of webhooks.rotate_secret. `overlap`: seconds that the old one signs."""

    id: str
    overlap: float = OVERLAP


class Page(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of webhooks.deliveries. `before`: an event_seq (the next page)."""

    id: str
    state: str | None = None
    before: str | None = None
    limit: int = 50


class After(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of webhooks.missed. `after`: the last sequence number that the receiver has."""

    id: str
    after: str = "0"
    limit: int = 50


class Again(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of webhooks.redeliver: exactly one of the two."""

    delivery_id: str | None = None
    event_id: str | None = None


class Plan(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of webhooks.plan_replay: events recorded from since to until."""

    id: str
    since: str
    until: str
    failed_only: bool = False


class Pair(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of webhooks.explain."""

    endpoint_id: str
    event_id: str


class Type(msgspec.Struct):
    """A type of event that may be sent."""

    name: str
    description: str


class Done(msgspec.Struct):
    """What was asked for is done; `id` of what it is about."""

    id: str


class Recorded(msgspec.Struct):
    """The event that a test is."""

    event_id: str


class Started(msgspec.Struct):
    """Deliveries that are on their way again."""

    delivery_ids: list[str]


def list_endpoints(desk: Desk, _: Nothing) -> list[Endpoint]:
    """List the caller's endpoints."""
    return desk.webhooks.endpoints(desk.owner_id)


def get_endpoint(desk: Desk, arguments: One) -> Endpoint:
    """Show one endpoint."""
    return desk.webhooks.get(desk.owner_id, arguments.id)


def event_types(desk: Desk, _: Nothing) -> list[Type]:
    """List the types that may be sent."""
    return [Type(name, text) for name, text in desk.webhooks.event_types()]


def create(desk: Desk, arguments: Create) -> Created:
    """Add an endpoint."""
    given = msgspec.structs.asdict(arguments)
    given["event_types"] = tuple(arguments.event_types)
    given["schedule"] = None if arguments.schedule is None else tuple(arguments.schedule)
    return desk.webhooks.create(desk.owner_id, Draft(**given))


def update(desk: Desk, arguments: Update) -> Endpoint:
    """Change what is given."""
    given = msgspec.structs.asdict(arguments)
    endpoint_id = given.pop("id")
    fields = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    return desk.webhooks.update(desk.owner_id, endpoint_id, fields)


def delete(desk: Desk, arguments: One) -> Done:
    """Remove an endpoint."""
    desk.webhooks.delete(desk.owner_id, arguments.id)
    return Done(arguments.id)


def rotate_secret(desk: Desk, arguments: Rotate) -> Created:
    """Give an endpoint a new secret."""
    return desk.webhooks.rotate_secret(desk.owner_id, arguments.id, arguments.overlap)


def pause(desk: Desk, arguments: One) -> Endpoint:
    """Hold what would be sent."""
    desk.webhooks.pause(desk.owner_id, arguments.id)
    return desk.webhooks.get(desk.owner_id, arguments.id)


def resume(desk: Desk, arguments: One) -> Endpoint:
    """Send again."""
    desk.webhooks.resume(desk.owner_id, arguments.id)
    return desk.webhooks.get(desk.owner_id, arguments.id)


def send_test(desk: Desk, arguments: One) -> Recorded:
    """Send a test event."""
    return Recorded(desk.webhooks.send_test(desk.owner_id, arguments.id))


def deliveries(desk: Desk, arguments: Page) -> list[Delivery]:
    """List what was sent."""
    desk.webhooks.get(desk.owner_id, arguments.id)
    return desk.webhooks.deliveries(
        desk.owner_id,
        arguments.id,
        state=arguments.state,
        before=arguments.before,
        limit=arguments.limit,
    )


def attempts(desk: Desk, arguments: One) -> list[Attempt]:
    """Show the requests of a delivery."""
    return desk.webhooks.attempts(desk.owner_id, arguments.id)


def missed(desk: Desk, arguments: After) -> list[Missed]:
    """Read what a receiver may have missed."""
    desk.webhooks.get(desk.owner_id, arguments.id)
    return desk.webhooks.missed(desk.owner_id, arguments.id, arguments.after, arguments.limit)


def redeliver(desk: Desk, arguments: Again) -> Started:
    """Send once more."""
    return Started(
        desk.webhooks.redeliver(
            desk.owner_id, delivery_id=arguments.delivery_id, event_id=arguments.event_id
        )
    )


def plan_replay(desk: Desk, arguments: Plan) -> Replay:
    """Count what a replay would send."""
    return desk.webhooks.plan_replay(
        desk.owner_id,
        arguments.id,
        arguments.since,
        arguments.until,
        failed_only=arguments.failed_only,
    )


def start_replay(desk: Desk, arguments: One) -> Replay:
    """Run a plan."""
    return desk.webhooks.start_replay(desk.owner_id, arguments.id)


def cancel_replay(desk: Desk, arguments: One) -> Replay:
    """Send no more of it."""
    return desk.webhooks.cancel_replay(desk.owner_id, arguments.id)


def replay(desk: Desk, arguments: One) -> Replay:
    """Tell how far a replay has come."""
    return desk.webhooks.replay(desk.owner_id, arguments.id)


def explain(desk: Desk, arguments: Pair) -> Told:
    """Tell how an event stands with an endpoint."""
    return desk.webhooks.explain(desk.owner_id, arguments.endpoint_id, arguments.event_id)


OPERATIONS = (
    Operation(
        "webhooks.list", "List endpoints, newest first.", Nothing, list[Endpoint], list_endpoints
    ),
    Operation("webhooks.get", "Show one endpoint.", One, Endpoint, get_endpoint),
    Operation(
        "webhooks.event_types", "List the types that may be sent.", Nothing, list[Type], event_types
    ),
    Operation(
        "webhooks.create",
        "Add an endpoint; its secret is shown once.",
        Create,
        Created,
        create,
        writes=True,
    ),
    Operation(
        "webhooks.update",
        "Change an endpoint, from its next attempt on.",
        Update,
        Endpoint,
        update,
        writes=True,
    ),
    Operation(
        "webhooks.delete",
        "Remove an endpoint with its log; cancel what is on its way.",
        One,
        Done,
        delete,
        writes=True,
    ),
    Operation(
        "webhooks.rotate_secret",
        "Give an endpoint a new secret; the old one signs for a while.",
        Rotate,
        Created,
        rotate_secret,
        writes=True,
    ),
    Operation(
        "webhooks.pause",
        "Hold what would be sent to an endpoint.",
        One,
        Endpoint,
        pause,
        writes=True,
    ),
    Operation(
        "webhooks.resume",
        "Send to an endpoint again, whyever it was disabled.",
        One,
        Endpoint,
        resume,
        writes=True,
    ),
    Operation(
        "webhooks.send_test",
        "Send a test event to one endpoint.",
        One,
        Recorded,
        send_test,
        writes=True,
    ),
    Operation(
        "webhooks.deliveries",
        "List what was sent to an endpoint, newest first.",
        Page,
        list[Delivery],
        deliveries,
    ),
    Operation(
        "webhooks.attempts",
        "Show each request of a delivery and its answer.",
        One,
        list[Attempt],
        attempts,
    ),
    Operation(
        "webhooks.missed",
        "Read an endpoint's events after a sequence number.",
        After,
        list[Missed],
        missed,
    ),
    Operation(
        "webhooks.redeliver",
        "Send a delivery, or all of an event, once more.",
        Again,
        Started,
        redeliver,
        writes=True,
    ),
    Operation(
        "webhooks.plan_replay",
        "Count what a replay of a span of time would send.",
        Plan,
        Replay,
        plan_replay,
        writes=True,
    ),
    Operation(
        "webhooks.start_replay",
        "Run a planned replay in small batches.",
        One,
        Replay,
        start_replay,
        writes=True,
    ),
    Operation(
        "webhooks.cancel_replay",
        "Send no more of a replay.",
        One,
        Replay,
        cancel_replay,
        writes=True,
    ),
    Operation("webhooks.replay", "Tell how far a replay has come.", One, Replay, replay),
    Operation(
        "webhooks.explain", "Tell how an event stands with an endpoint.", Pair, Told, explain
    ),
)
