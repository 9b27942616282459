"""What an answer means: from a receiver's answer to what becomes of delivery and endpoint. Pure.

`TABLE` is the rule, first row that fits; `judge` reads it. Stands between the HTTP client, whose
`Exchange` it reads, and the delivery, which writes what comes out in one settle transaction. A
fault of our own is a job error and never comes here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from shared.webhooks.codes import BLOCKED, ERRORS

Outcome = Literal["success", "failure", "wait"]

# Seconds without calls to an endpoint that is overwhelmed and names no time, or does not answer at
# all: what waits for it would fail the same way, and each spend a try.
SHORT_PAUSE = 30.0
SHORTEST_PAUSE = 5.0  # seconds, for who asks to wait 0: it spends no attempt, so it must not spin
TOO_LARGE_TRIES = 3
BLOCKED_TRIES = 3


@dataclass(frozen=True, slots=True)
class Action:
    """What becomes of a delivery and its endpoint.

    Attributes:
        outcome: "success" ends the delivery; "failure" spends an attempt and follows the schedule;
            "wait" spends none and comes back after the pause.
        code: for the attempt's row: "" after a success, else a short word out of a closed set.
        pause: seconds in which the whole endpoint is not called; 0 = none.
        disables: why the endpoint is disabled now ("gone"), or, with `tries`, after the last of
            them ("blocked"); "" = it is not. Its waiting deliveries are held, this one too; the
            owner is told.
        tries: at most so many attempts in all, whatever the schedule says; None = the schedule.
        loud: shown to the owner as something that will not mend itself.
    """

    outcome: Outcome
    code: str
    pause: float = 0.0
    disables: str = ""
    tries: int | None = None
    loud: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: of the answer; None = there was none.
        error: a code of `shared.webhooks.codes.ERRORS`; "" = there was an answer.
        retry_after: seconds asked for (`schedule.retry_after`); None = not asked, or unreadable.
        by_url: a rule forbids the URL itself, whatever its name resolves to.
    """

    status: int | None
    error: str = ""
    retry_after: float | None = None
    by_url: bool = False


Fits = Callable[[Answer], bool]


def _status(*statuses: int) -> Fits:
    return lambda answer: answer.status in statuses


def _hundred(first: int) -> Fits:
    return lambda answer: answer.status is not None and answer.status // 100 == first


def _asked(*statuses: int) -> Fits:
    return lambda answer: answer.status in statuses and answer.retry_after is not None


TABLE: tuple[tuple[Fits, Action], ...] = (
    # Refused for good, but not at once: a setting may be wrong for a moment, or in one process.
    (
        lambda answer: answer.by_url,
        Action("failure", BLOCKED, disables="blocked", tries=BLOCKED_TRIES, loud=True),
    ),
    (
        lambda answer: answer.error == BLOCKED,
        Action("failure", BLOCKED, tries=BLOCKED_TRIES, loud=True),
    ),
    # The code is the error's.
    (lambda answer: answer.error in ERRORS, Action("failure", "", pause=SHORT_PAUSE)),
    (_hundred(2), Action("success", "")),
    (_hundred(3), Action("failure", "redirect_not_followed", loud=True)),
    (_status(410), Action("failure", "gone", disables="gone", loud=True)),
    (_asked(429, 503), Action("wait", "asked_to_wait")),  # the pause is what was asked for
    (_status(408, 425, 429), Action("failure", "overwhelmed", pause=SHORT_PAUSE)),
    (_hundred(5), Action("failure", "server_error", pause=SHORT_PAUSE)),
    (_status(413), Action("failure", "too_large", tries=TOO_LARGE_TRIES, loud=True)),
    (_hundred(4), Action("failure", "client_error")),
)
CODES = frozenset(action.code for _, action in TABLE if action.code)
LOUD = frozenset(action.code for _, action in TABLE if action.loud)
STRANGE = Action("failure", "strange_status")  # 1xx as the last word, or beyond 599


def judge(answer: Answer, *, discard_client_errors: bool = False) -> Action:
    """Read the table.

    Args:
        answer: what came back.
        discard_client_errors: a 4xx without a meaning of its own ends the delivery at once.
    """
    action = next((action for fits, action in TABLE if fits(answer)), STRANGE)
    if answer.error and not action.code:
        return replace(action, code=answer.error)
    if action.outcome == "wait":
        return replace(action, pause=max(answer.retry_after or 0.0, SHORTEST_PAUSE))
    if action.code == "client_error" and discard_client_errors:
        return replace(action, tries=1)
    return action
