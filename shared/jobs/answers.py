"""What a handler's answer means, as data. Pure.

Before this: a handler returned. After it: the outcome travels back to whoever judges it
(shared.jobs.retry). An answer that cannot be stored is refused, which fails the attempt.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from shared.backoff import LONGEST_DELAY
from shared.errors import InvalidArguments
from shared.jobs.failures import clean
from shared.jobs.outcomes import MAX_RESULT_BYTES, Completed, Discard, Retry, Snooze
from shared.jsonvalue import encode_value


class Answer(NamedTuple):
    """How a handler ended by itself.

    Attributes:
        outcome: completed, snoozed, discarded or failed.
        delay: seconds of a snooze, or in place of the kind's backoff.
        error: message for people.
        result: JSON text; None = there is none.
        cause: one word for programs; None = none.
    """

    outcome: str
    delay: float | None = None
    error: str | None = None
    result: str | None = None
    cause: str | None = None


_DONE = Answer("completed")


def read_answer(given: object, kind: str) -> Answer:
    """Read what a handler returned.

    Raises:
        InvalidArguments: a result that cannot be stored, a delay that is none, another type.
    """
    if given is None:
        return _DONE
    if isinstance(given, Completed):
        if given.result is None:
            return _DONE
        text = encode_value(given.result, f"result of kind {kind}", MAX_RESULT_BYTES)
        return Answer("completed", result=text)
    if isinstance(given, Snooze):
        return Answer("snoozed", delay=_delay(given.seconds, kind))
    if isinstance(given, Discard):
        return Answer("discarded", error=clean(str(given.reason)))
    if isinstance(given, Retry):
        delay = None if given.seconds is None else _delay(given.seconds, kind)
        return Answer("failed", error=clean(str(given.reason)), delay=delay)
    raise InvalidArguments(
        f"handler of kind {kind}: expected None or an outcome; got {type(given).__name__}; "
        "wrap a result in Completed(…)"
    )


def _delay(seconds: object, kind: str) -> float:
    if isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0:
        return min(float(seconds), LONGEST_DELAY)
    raise InvalidArguments(
        f"handler of kind {kind}: expected a delay of 0 or more seconds; got {seconds!r}; "
        "give it as a number"
    )
