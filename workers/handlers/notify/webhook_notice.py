"""Handler of `webhook.notice`: an endpoint fails or was disabled, so its contact is told by mail.

Runs in a child of the notify queue, after the relay made a job of `webhook.endpoint.failing` or
`.disabled`. The letter's id is the event's, so that one sent twice is the same letter. Without
anybody to write to, or a way to, the job completes and its result says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from html import escape
from typing import Any

from shared.config.mail import URL
from shared.config.settings import Settings
from shared.events.event import Event
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Discard, Outcome, Retry
from shared.postgres.webhooks.notices import Notified, notified
from workers.sideeffects.mail.port import Letter, Mailer
from workers.sideeffects.mail.smtp import SmtpMailer

NO_MAIL = "no mail is configured: set WEIRKEEPER_SMTP_URL and WEIRKEEPER_MAIL_FROM"
NO_CONTACT = "the endpoint has no contact: weirkeeper webhooks update ID --contact ADDRESS"
GONE = "the endpoint was removed"
WHY = {
    "gone": "it answered that it is gone (410)",
    "failing": "every attempt of five days failed",
    "blocked": "its URL may not be called from here, by a rule of this installation",
}


def handle(ctx: Context, _args: Mapping[str, Any], event: Event) -> Outcome:
    """Write to the endpoint's contact; the result says whether, or why not."""
    with ctx.connection(pristine=True) as conn:
        found = notified(conn, event.owner_id or "", str(event.data.get("endpoint_id", "")))
    sender = mailer()
    if found is None or found.contact is None or sender is None:
        why = GONE if found is None else NO_CONTACT if found.contact is None else NO_MAIL
        ctx.log.warning("nobody was told of %s: %s", event.type, why)
        return Completed({"sent": False, "why": why})
    answer = sender.send(letter(event, found, found.contact))
    if answer.ours:  # tried again all the same: whoever mends it within hours loses no notice
        ctx.log.error("no mail goes out until %s is mended: %s", URL, answer.why)
        return Retry(f"mail: {answer.why}; mend {URL}")
    if answer.sent == "later":
        return Retry(f"mail: {answer.why}")
    if answer.sent == "never":
        return Discard(f"mail: {answer.why}")
    return Completed({"sent": True})


def letter(event: Event, endpoint: Notified, to: str) -> Letter:
    """What its contact is told."""
    code, status = event.data.get("code"), event.data.get("status")
    last = f"{code}, status {status}" if status is not None else f"{code}"
    subject, what = _what(event, endpoint)
    lines = [
        what,
        f"URL: {endpoint.place}",
        f"Failed attempts in a row: {event.data.get('failures')}; the last answer: {last}.",
        f"What was sent and answered: weirkeeper webhooks deliveries {endpoint.id}",
    ]
    html = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return Letter(
        id=event.id,
        to=to,
        subject=subject,
        written_at=datetime.fromisoformat(event.occurred_at),
        text="\n\n".join(lines) + "\n",
        html=f"<!doctype html><html><body>{html}</body></html>",
    )


def _what(event: Event, endpoint: Notified) -> tuple[str, str]:
    host = endpoint.host
    if event.type.endswith(".failing"):
        return (
            f"Webhook endpoint {endpoint.id} at {host} fails",
            (
                "Every attempt of the last two and a half days failed. After five days it is "
                "disabled; one success prevents it."
            ),
        )
    why = WHY[event.data.get("reason", "failing")]
    return (
        f"Webhook endpoint {endpoint.id} at {host} is disabled",
        (
            f"The endpoint is disabled: {why}. What waits for it is held; once it is mended, "
            f"`weirkeeper webhooks resume {endpoint.id}` sends it."
        ),
    )


@cache
def mailer() -> Mailer | None:
    """The mailer of this child; None = no mail is configured."""
    settings = Settings.load()
    if settings.mail is None:
        return None
    return SmtpMailer(settings.mail, settings.outbound.ca_file)
