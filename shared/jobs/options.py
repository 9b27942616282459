"""What may be said of one job beside kind and args, and the checks that Python can do.

Read by every adapter of Jobs, before a bad value could abort the caller's transaction; SQL repeats
the checks for callers in other languages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.errors import InvalidArguments
from shared.jobs.states import (
    CANCELLED,
    COMPLETED,
    DISCARDED,
    PENDING,
    RETRYABLE,
    RUNNING,
)
from shared.jsonvalue import MAX_BYTES, check_text, encode_object

MAX_TEXT = 200  # characters of kind, owner_id, trace and concurrency_key
MAX_TAGS = 16
MAX_TAG = 64  # characters of one tag
MAX_INTEGER = 2**31 - 1
DAY = 86_400
FIRST = datetime(1, 1, 2, tzinfo=UTC)  # moments between these two can be read by every program
LAST = datetime(9999, 12, 31, tzinfo=UTC)
_ALWAYS = (PENDING, RUNNING, RETRYABLE)
_FINAL = (COMPLETED, DISCARDED, CANCELLED)


@dataclass(frozen=True, slots=True)
class Unique:
    """At most one job of the kind with the same args: an enqueue returns the id that is there.

    Attributes:
        by: keys of the args that count; None = all args. A key that is missing counts as such.
        period: seconds; the clock is cut into periods of this length, and a job is unique in its
            own; None = for as long as the job is kept.
        states: in which a job keeps others out. Pending, running and retryable always; leave
            "completed" out to allow the next one at once, add "discarded" or "cancelled" to be
            strict.
        wait: another open transaction may be adding the same job: wait for its end, or (False)
            raise Conflict at once.
    """

    by: tuple[str, ...] | None = None
    period: float | None = None
    states: tuple[str, ...] = (*_ALWAYS, COMPLETED)
    wait: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be kept."""
        if self.by is not None and (
            not isinstance(self.by, tuple)
            or not self.by
            or not all(isinstance(key, str) for key in self.by)
        ):
            raise InvalidArguments(
                f"unique.by: expected a tuple of keys of the args; got {self.by!r}; "
                "leave it out for all args"
            )
        for key in self.by or ():
            check_text(key, "unique.by", MAX_BYTES)
        if self.period is not None and not (_number(self.period) and 1 <= self.period <= 366 * DAY):
            raise InvalidArguments(
                f"unique.period: expected 1 s to a year; got {self.period!r}; "
                "leave it out to keep others out for as long as the job is kept"
            )
        states = self.states if isinstance(self.states, tuple | list) else ()
        if not set(_ALWAYS) <= set(states) <= {*_ALWAYS, *_FINAL}:
            raise InvalidArguments(
                f"unique.states: expected pending, running, retryable and any of "
                f"{', '.join(_FINAL)}; got {self.states!r}; add or remove states"
            )
        if not isinstance(self.wait, bool):
            raise InvalidArguments(
                f"unique.wait: expected True or False; got {self.wait!r}; leave it out to wait"
            )


@dataclass(frozen=True, slots=True)
class EnqueueOpts:
    """What may be said of one job beside kind and args.

    Attributes:
        run_at: not before this moment (aware datetime); None = at once.
        priority: 1 (first) to 4; None = 2.
        awaited: somebody waits: flush its outcome at once; None = as the kind says.
        owner_id: whose job it is, at most 200 characters.
        max_attempts: None = the kind's.
        timeout: seconds; None = the kind's.
        trace: W3C traceparent, handed to the handler.
        tags: words to find it by, at most 16 of 1 to 64 characters.
        expires_at: not started after this moment (aware datetime): discarded instead.
        unique: at most one such job; None = always a new one.
        concurrency_key: with others of the same key it runs at most `max_per_key` (of the kind)
            at once; 1 to 200 characters.
    """

    run_at: datetime | None = None
    priority: int | None = None
    awaited: bool | None = None
    owner_id: str | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    trace: str | None = None
    tags: tuple[str, ...] = ()
    expires_at: datetime | None = None
    unique: Unique | None = None
    concurrency_key: str | None = None


def checked_many(kind: str, args_list: Iterable[Mapping[str, Any]]) -> list[str]:
    """Check the args of many jobs of a kind.

    Returns:
        Their JSON texts.

    Raises:
        InvalidArguments: there is no list of them, or one cannot be stored; it is named, from 0.
    """
    check_text(kind, "kind", MAX_TEXT)
    if isinstance(args_list, str | bytes | Mapping) or not isinstance(args_list, Iterable):
        raise InvalidArguments(
            f"args_list of kind {kind}: expected a list of objects, one for each job; "
            f"got {type(args_list).__name__}; for one job use enqueue"
        )
    return [
        encode_object(
            dict(args) if isinstance(args, Mapping) else args, f"args_list[{n}] of kind {kind}"
        )
        for n, args in enumerate(args_list)
    ]


def checked_args(kind: str, args: Mapping[str, Any]) -> str:
    """Check a job's args; any mapping is as good as a dict.

    Returns:
        Their JSON text.

    Raises:
        InvalidArguments: they cannot be stored.
    """
    check_text(kind, "kind", MAX_TEXT)
    given = dict(args) if isinstance(args, Mapping) else args
    return encode_object(given, f"args of kind {kind}")


def check_options(kind: str, opts: EnqueueOpts) -> None:
    """Refuse an option that cannot be kept.

    Raises:
        InvalidArguments: which, what was expected, and what to do.
    """
    if not isinstance(opts, EnqueueOpts):
        raise InvalidArguments(
            f"options of kind {kind}: expected EnqueueOpts(…); got {type(opts).__name__}; "
            "build it with EnqueueOpts(name=value)"
        )
    check_text(opts.owner_id, f"owner_id of kind {kind}", MAX_TEXT)
    check_text(opts.trace, f"trace of kind {kind}", MAX_TEXT)
    check_text(opts.concurrency_key, f"concurrency_key of kind {kind}", MAX_TEXT)
    if opts.concurrency_key == "":
        raise InvalidArguments("concurrency_key: expected 1 to 200 characters; got ''; name it")
    _check_tags(kind, opts.tags)
    _check_moment("run_at", opts.run_at)
    _check_moment("expires_at", opts.expires_at)
    if opts.run_at and opts.expires_at and opts.expires_at <= opts.run_at:
        raise InvalidArguments(
            f"expires_at: expected a moment after run_at; got {opts.expires_at} and {opts.run_at}; "
            "such a job never runs"
        )
    _check_whole("priority", opts.priority, 1, 4)
    _check_whole("max_attempts", opts.max_attempts, 1, MAX_INTEGER)
    if not (opts.awaited is None or isinstance(opts.awaited, bool)):
        raise InvalidArguments(
            f"awaited: expected True or False; got {opts.awaited!r}; leave it out for the kind's"
        )
    if not (opts.unique is None or isinstance(opts.unique, Unique)):
        raise InvalidArguments(
            f"unique: expected Unique(…); got {opts.unique!r}; say Unique() for all args"
        )
    timeout = opts.timeout
    if timeout is not None and not (_number(timeout) and 0 < timeout <= DAY):
        raise InvalidArguments(
            f"timeout: expected more than 0 s and at most {DAY} s; got {timeout!r}; "
            "leave it out for the kind's"
        )


def _check_tags(kind: str, tags: tuple[str, ...]) -> None:
    if not isinstance(tags, tuple) or len(tags) > MAX_TAGS:
        raise InvalidArguments(f"tags: expected a tuple of at most {MAX_TAGS}; got {tags!r}")
    for tag in tags:
        if not isinstance(tag, str) or not tag:
            raise InvalidArguments(f"tags: expected words; got {tag!r}; remove it")
        check_text(tag, f"a tag of kind {kind}", MAX_TAG)


def _check_moment(what: str, moment: datetime | None) -> None:
    if moment is None:
        return
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise InvalidArguments(
            f"{what}: expected a datetime with a time zone; got {moment!r}; add tzinfo=UTC"
        )
    if not FIRST < moment < LAST:
        raise InvalidArguments(
            f"{what}: expected a moment in the years 1 to 9999; got {moment}; leave it out for none"
        )


def _check_whole(what: str, value: int | None, low: int, high: int) -> None:
    if value is None or (_number(value) and isinstance(value, int) and low <= value <= high):
        return
    raise InvalidArguments(
        f"{what}: expected a whole number from {low} to {high}; got {value!r}; "
        "leave it out for the usual one"
    )


def _number(value: object) -> bool:
    """Whether it is one; True and False, which Python counts among them, are none."""
    return type(value) is not bool and (
        isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    )
