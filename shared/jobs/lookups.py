"""What may be asked of an inspector: ids, filters, the length of a page, names. Pure.

Every adapter of Inspector asks here first, so that a mistake is told in the same words by all of
them, before anything is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from shared.errors import InvalidArguments, NotFound
from shared.jobs.inspect import JobFilter
from shared.jobs.options import MAX_INTEGER
from shared.jobs.states import STATES
from shared.jsonvalue import MAX_BYTES, check_text, encode_object

LARGEST = 2**63 - 1  # of a job's id
LONGEST = 1e9  # seconds of a wait: what the locks of Python take
_DIGITS = 19  # of that


def job_number(job_id: str | int) -> int:
    """The number of a job.

    Args:
        job_id: its text, as `enqueue` returns it, or the number that SQL returns.

    Raises:
        InvalidArguments: neither text nor a number.
        NotFound: what cannot be an id names no job.
    """
    if not isinstance(job_id, str | int) or isinstance(job_id, bool):
        raise InvalidArguments(
            f"job id: expected text or int; got {job_id!r:.40}; give what enqueue returned"
        )
    text = job_id if isinstance(job_id, str) else str(job_id) if 0 < job_id <= LARGEST else ""
    fits = len(text) <= _DIGITS and text.isascii() and text.isdigit() and text[0] != "0"
    if not fits or int(text) > LARGEST:
        raise NotFound(f"job: expected the id of one that is kept; got {_told(job_id)}")
    return int(text)


def wait_bound(seconds: float) -> float:
    """The bound of a wait; one that has passed already (below 0) looks once, as 0 does.

    Args:
        seconds: from now.

    Raises:
        InvalidArguments: no number, or none that ends.
    """
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not -LONGEST < seconds < LONGEST:  # not a number is neither
        raise InvalidArguments(
            f"max_seconds: expected a number of seconds that ends; got {seconds!r:.40}; "
            "0 looks once"
        )
    return seconds


def page_before(before: str | int | None) -> int | None:
    """The id that a page begins below; None = the newest job.

    Raises:
        InvalidArguments: it can be no id.
    """
    if before is None:
        return None
    try:
        return job_number(before)
    except (NotFound, InvalidArguments) as error:
        raise InvalidArguments(
            f"before: expected the id of a job; got {_told(before)}; give the last one of a page"
        ) from error


def page_limit(limit: int) -> int:
    """The length of a page.

    Raises:
        InvalidArguments: no whole number, or less than 1.
    """
    if type(limit) is not int or not 1 <= limit <= MAX_INTEGER:
        raise InvalidArguments(
            f"limit: expected a whole number, 1 or more; got {_told(limit)}; correct it"
        )
    return limit


def check_name(what: str, name: str | None) -> None:
    """Refuse what can be no name of a queue, a kind or a periodic job.

    Raises:
        InvalidArguments: no text, or none that the database could be asked for.
    """
    check_text(name, what, MAX_BYTES)


def check_filter(wanted: JobFilter) -> None:
    """Refuse a filter that no adapter can answer; which args may be named: check_searchable.

    Raises:
        InvalidArguments: what was expected, what came, what to do.
    """
    if not isinstance(wanted, JobFilter):
        raise InvalidArguments(
            f"filter: expected JobFilter(…); got {type(wanted).__name__}; build it with "
            "JobFilter(name=value)"
        )
    for what in ("kind", "queue", "owner_id", "tag"):
        check_text(getattr(wanted, what), what, MAX_BYTES)
    if wanted.state is not None and wanted.state not in STATES:
        raise InvalidArguments(
            f"state: expected one of {', '.join(STATES)}; got {wanted.state!r}; correct it"
        )
    moment("created_after", wanted.created_after)
    moment("created_before", wanted.created_before)
    if wanted.args is None:
        return
    if wanted.kind is None:
        raise InvalidArguments("args: expected a kind beside them; got none; name the kind")
    filter_args(wanted.args)


def filter_args(args: Mapping[str, object]) -> str:
    """The args of a filter as JSON text.

    Raises:
        InvalidArguments: no object, or what no job's args can contain.
    """
    return encode_object(dict(args) if isinstance(args, Mapping) else args, "args of the filter")


def check_searchable(wanted: JobFilter, declared: Sequence[str]) -> None:
    """Refuse args that the kind does not declare.

    Args:
        wanted: a filter that passed check_filter.
        declared: the kind's `searchable`; () = there is no such kind.

    Raises:
        InvalidArguments: which keys, and which there are.
    """
    if wanted.args is None:
        return
    strange = sorted(set(wanted.args) - set(declared))
    if strange or not wanted.args:
        raise InvalidArguments(
            f"args: expected keys that kind {wanted.kind} declares as searchable "
            f"({', '.join(declared) or 'none'}); got {', '.join(strange) or 'no key'}; "
            "correct them, or declare them on the Kind"
        )


def moment(what: str, text: str | None) -> datetime | None:
    """A moment out of a filter; None = none was given.

    Raises:
        InvalidArguments: no ISO 8601, or no time zone.
    """
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        read = None
    if read is None or read.tzinfo is None:
        raise InvalidArguments(
            f"{what}: expected a moment with a time zone, as 2026-01-31T12:00:00Z; "
            f"got {_told(text)}; correct it"
        )
    return read


def _told(given: object) -> str:
    return f"{given!r:.40}"
