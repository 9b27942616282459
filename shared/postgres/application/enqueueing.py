"""What enqueueing sends to the database, for sync and async connections alike.

Before this: an application's call of Jobs or AsyncJobs. After it: the SQL functions
`weirkeeper.enqueue` and `weirkeeper.enqueue_staged`, the one implementation. Everything that
Python can refuse is refused here, before a statement could abort the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, LiteralString, NamedTuple

from shared.jobs.options import Unique, check_options, checked_args, checked_many
from shared.jobs.port import DEFAULTS, EnqueueOpts
from shared.jobs.trace import carried
from shared.postgres.driver.statements import statement


class Texts(NamedTuple):
    """The statements that both adapters send."""

    enqueue: LiteralString
    enqueue_with_options: LiteralString
    open_staging: LiteralString
    stage: LiteralString
    enqueue_staged: LiteralString


@cache
def texts() -> Texts:
    """Read at the first use: a schema's name that cannot work is no failed import."""
    return Texts(
        enqueue=statement("jobs/enqueue"),
        enqueue_with_options=statement("jobs/enqueue_with_options"),
        open_staging=statement("jobs/open_staging"),
        stage=statement("jobs/stage"),
        enqueue_staged=statement("jobs/enqueue_staged"),
    )


CHUNK = 256  # rows handed to the driver at once
_NOT_UNIQUE = Unique()


def one(
    kind: str, args: Mapping[str, Any], opts: EnqueueOpts
) -> tuple[LiteralString, dict[str, Any]]:
    """The statement that adds one job, and its parameters.

    Nearly all jobs have no options: none is looked at, sent or read for these.

    Raises:
        InvalidArguments: args or options that cannot be stored.
    """
    given: dict[str, Any] = {"kind": kind, "args": checked_args(kind, args)}
    if opts is DEFAULTS:
        return texts().enqueue, {**given, "trace": carried(None)}
    return texts().enqueue_with_options, {**given, **options(kind, opts)}


def options(kind: str, opts: EnqueueOpts) -> dict[str, Any]:
    """Parameters of jobs/enqueue_staged: the kind and what is said of each job.

    Raises:
        InvalidArguments: an option that cannot be kept.
    """
    check_options(kind, opts)
    unique = opts.unique or _NOT_UNIQUE
    is_unique = opts.unique is not None
    return {
        "kind": kind,
        "run_at": opts.run_at,
        "priority": opts.priority,
        "owner_id": opts.owner_id,
        "awaited": opts.awaited,
        "max_attempts": opts.max_attempts,
        "timeout_ms": None if opts.timeout is None else max(1, round(opts.timeout * 1000)),
        "trace": carried(opts.trace),
        "tags": list(opts.tags) or None,
        "expires_at": opts.expires_at,
        "unique_by_args": is_unique,
        "unique_by": None if unique.by is None else list(unique.by),
        "unique_period": unique.period,
        "unique_states": list(unique.states) if unique.states != _NOT_UNIQUE.states else None,
        "unique_wait": unique.wait,
        "concurrency_key": opts.concurrency_key,
    }


def rows(kind: str, args_list: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows of STAGE in the text format of COPY, checked one and all before the first is sent.

    JSON text has no tab and no newline of its own; only its backslashes mean something to COPY.

    Raises:
        InvalidArguments: names the first row that cannot be stored, counted from 0.
    """
    texts = checked_many(kind, args_list)
    return [f"{n}\t" + text.replace("\\", "\\\\") + "\n" for n, text in enumerate(texts, 1)]


def chunks(lines: Sequence[str]) -> Iterator[str]:
    """The rows in pieces that are worth a call each."""
    for low in range(0, len(lines), CHUNK):
        yield "".join(lines[low : low + CHUNK])


def ids(row: Any) -> list[str]:
    """Job ids, 64-bit numbers, as the decimal strings that Python and JSON see."""
    return [str(job_id) for job_id in row[0]]
