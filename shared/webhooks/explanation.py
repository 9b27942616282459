"""How an event stands with an endpoint, in one sentence. Pure.

Before this: the facts, read by the adapter in one statement. After it: an operation's answer. The
order of the questions is the order in which a delivery meets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.webhooks.records import Told

_WHY = {
    "manual": "is paused",
    "gone": "answered that it is gone, and is disabled",
    "failing": "failed for five days, and is disabled",
    "blocked": "has a URL that may not be called here, and is disabled",
}
# Of codes that will not mend themselves (shared.webhooks.answers.LOUD): what to do.
ADVICE = {
    "redirect_not_followed": "a redirect is never followed: change the URL",
    "blocked_target": "change the URL: `weirkeeper webhooks check-url` names the rule",
    "gone": "resume it once it is back",
    "too_large": "have the receiver take larger bodies",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an event, an endpoint, and the delivery between them; moments as text.

    Attributes:
        wanted: the endpoint's patterns fit the event's type.
        behind: in strict order, an older delivery comes first.
        contact: who is told by mail that the endpoint fails, or was disabled.
        opens_at: until then no delivery of the endpoint is begun.
        own_fault: the last run of the delivery's job failed, and not at the endpoint.
        fanout, fanout_job: the job that makes deliveries of the event: its state, or "nobody" = no
            endpoint wanted it, so there is none.
    """

    event_type: str | None
    exposure: str | None
    occurred_at: str | None
    fanned_out: bool
    url: str
    patterns: list[str]
    wanted: bool
    enabled: bool
    disabled_reason: str | None
    disabled_at: str | None
    endpoint_created_at: str
    busy_until: str | None
    not_before: str | None
    delivery_id: str | None
    state: str | None
    attempts: int | None
    tries: int | None
    next_at: str | None
    job_id: str | None
    ended_at: str | None
    code: str | None
    status: int | None
    result: str | None
    phases: dict[str, float] | None
    behind: bool
    failing_since: str | None
    contact: str | None
    rate: int | None
    opens_at: str | None
    own_fault: bool
    fanout: str | None
    fanout_job: str | None

    def told(self) -> dict[str, Any]:
        """Those that say something."""
        shown = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in shown.items() if value is not None}


def explain(facts: Facts) -> Told:
    """One plain sentence, and the facts behind it."""
    sentence = _not_sent(facts) if facts.delivery_id is None else _delivery(facts)
    return Told(sentence + _notice(facts), facts.told())


def _notice(facts: Facts) -> str:
    """Who is told of an endpoint that fails, or is disabled by itself."""
    if facts.disabled_reason == "manual" or (facts.enabled and facts.failing_since is None):
        return ""
    if facts.contact is None:
        return " The endpoint has no contact that could be told by mail."
    when = "when it has failed for long" if facts.enabled else "of that"
    return f" Its contact, {facts.contact}, is told {when}, if mail is configured."


def _not_sent(facts: Facts) -> str:
    older = str(facts.occurred_at) < facts.endpoint_created_at
    return _first(
        (
            facts.event_type is None,
            "There is no such event of yours: it was never recorded, or was pruned.",
        ),
        (
            facts.exposure != "webhook",
            f"Never sent: events of type {facts.event_type} do not leave the installation.",
        ),
        (
            not facts.wanted,
            f"Not sent: it wants {', '.join(facts.patterns)}, not {facts.event_type}.",
        ),
        (not facts.fanned_out, "Not yet: the event waits for the relay."),
        (not facts.enabled, f"Not sent: the endpoint {_disabled(facts)}; a replay sends it."),
        (older, "Not sent: the endpoint was added after the event; a replay sends it."),
        (
            facts.fanout in ("discarded", "cancelled"),
            (
                f"Not sent: the job that makes its deliveries was {facts.fanout}; "
                f"`weirkeeper jobs retry {facts.fanout_job}` makes them."
            ),
        ),
        (
            facts.fanout in ("completed", "nobody"),
            (
                "Not sent: when the event was fanned out, the endpoint was disabled, or did not "
                "want its type; a replay sends it."
            ),
        ),
        (True, "Not yet: the event was fanned out, and its deliveries are being made."),
    )


def _delivery(facts: Facts) -> str:
    last = _last(facts)
    return _first(
        (
            facts.state == "delivered",
            f"Delivered at {facts.ended_at}, answered with {facts.status}.",
        ),
        (facts.state == "cancelled", f"Cancelled at {facts.ended_at}; redeliver sends it."),
        (
            facts.state == "failed",
            f"Given up at {facts.ended_at} after {facts.tries} tries{last}; redeliver sends it.",
        ),
        (not facts.enabled, f"Held: the endpoint {_disabled(facts)}{last}."),
        (
            facts.behind,
            f"Waits for an older event, for the endpoint wants them in order{last}.",
        ),
        (
            facts.busy_until is not None,
            f"Waits while another request is under way, until {facts.busy_until} at most.",
        ),
        (
            facts.not_before is not None,
            f"Waits until {facts.not_before}: {_paused(facts)}{last}.",
        ),
        (
            facts.own_fault,
            (
                "The last run of its job failed here, not at the endpoint, and is tried again: "
                f"`weirkeeper jobs explain {facts.job_id}` tells why."
            ),
        ),
        (
            facts.next_at is not None,
            f"Tried {facts.tries} times; next try at {facts.next_at}{last}.",
        ),
        (
            facts.rate is not None and facts.opens_at is not None,
            f"Waits until {facts.opens_at}: the endpoint takes {facts.rate} requests a minute.",
        ),
        (True, "Waits for its turn."),
    )


def _first(*answers: tuple[bool, str]) -> str:
    return next(sentence for holds, sentence in answers if holds)


def _paused(facts: Facts) -> str:
    """Why the endpoint gets nothing for a while, as far as this delivery knows."""
    if facts.code == "asked_to_wait":
        return "its Retry-After asked for that"
    if facts.code is None or facts.result == "delivered":
        return "the endpoint asked for a pause, or failed at another event"
    return "the endpoint failed, and gets nothing for a moment"


def _disabled(facts: Facts) -> str:
    return f"{_WHY.get(str(facts.disabled_reason), '')} since {facts.disabled_at}"


def _last(facts: Facts) -> str:
    if facts.code is None or facts.result == "delivered":
        return ""
    answer = "" if facts.status is None else f", status {facts.status}"
    advice = f" ({ADVICE[facts.code]})" if facts.code in ADVICE else ""
    return f"; last: {facts.code}{answer}{advice}"
