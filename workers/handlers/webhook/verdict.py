"""What an answer does to a delivery: from the exchange to what is written and what the job answers.

Pure. Before this: the guarded client. After it: one settle transaction. The rules are those of
shared.webhooks.answers (what an answer means) and shared.webhooks.schedule (when to try again).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.jobs.outcomes import Completed, Discard, Outcome, Retry, Snooze
from shared.postgres.webhooks.deliveries import Report
from shared.webhooks.answers import Action, Answer, judge
from shared.webhooks.port import Lease, Settled
from shared.webhooks.schedule import DEFAULT, Schedule, own_schedule, retry_after
from workers.sideeffects.http.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Round:
    """One attempt: under which lease, where to, since when, and by which setting."""

    lease: Lease
    url: str
    begun: datetime
    discard_client_errors: bool = False


def report(this: Round, exchange: Exchange, now: datetime) -> Report:
    """What is written of it.

    Args:
        this: the attempt.
        exchange: what came back.
        now: moment of the answer.
    """
    asked = retry_after(exchange.retry_after, now) if exchange.retry_after else None
    answer = Answer(exchange.status, exchange.error, asked, exchange.by_url)
    action = judge(answer, discard_client_errors=this.discard_client_errors)
    disables = action.disables if action.tries is None or _spent(action, this.lease) else ""
    result = {"success": "delivered", "wait": "deferred"}.get(action.outcome, "failed")
    return Report(
        result=result,
        code=exchange.error or action.code or "ok",
        delay=0.0 if disables else _delay(action, this.lease, now),  # held, not given up
        pause=action.pause or None,
        disable=disables or None,
        url=this.url,
        started_at=this.begun.timestamp(),
        status=exchange.status,
        phases={phase: round(seconds * 1000, 2) for phase, seconds in exchange.times.items()},
        headers=exchange.headers,
        body=exchange.body or None,
        truncated=exchange.truncated,
        peer=exchange.peer or None,
    )


def outcome(written: Report, settled: Settled, *, strict: bool = False) -> Outcome:
    """What the job answers; a settle that came too late leaves all to the next try.

    Where order is kept, the settle has closed the endpoint's key until the next try: the job is
    back at once, and waits there at the head. Anywhere else others would be called before it.
    """
    if not settled.held:
        return Snooze(1.0)
    if written.result == "delivered":
        return Completed({"sent": True, "status": written.status})
    if settled.disabled is not None or written.disable is not None:
        return Snooze(0)  # held under the endpoint's key until it is enabled
    if written.result == "deferred" and written.delay is not None:
        return Snooze(0 if strict else written.delay)
    status = "" if written.status is None else f", status {written.status}"
    reason = f"webhook: {written.code}{status}"
    if written.delay is None:
        return Discard(reason)
    return Retry(reason, 0.0 if strict else written.delay)


def schedule_of(lease: Lease) -> Schedule:
    """The delays of an endpoint's deliveries."""
    return DEFAULT if lease.schedule is None else own_schedule(lease.schedule)


def _delay(action: Action, lease: Lease, now: datetime) -> float | None:
    """Seconds to the next try; None = the delivery ends."""
    if action.outcome == "success":
        return None
    schedule = schedule_of(lease)
    if now >= schedule.give_up_at(lease.begun_at):
        return None
    if action.outcome == "wait":
        return action.pause
    if _spent(action, lease):
        return None
    delay = schedule.delay(lease.attempts + 1)
    return None if delay is None else max(delay, action.pause)


def _spent(action: Action, lease: Lease) -> bool:
    """Whether this was the last of the tries that the answer allows."""
    return action.tries is not None and lease.attempts + 1 >= action.tries
