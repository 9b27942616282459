"""Use case: say whether a write can be found already, within 2 s, and claim nothing more.

Called after the write committed, never inside its transaction. One deadline covers both waits:
event → fan-out (which job?) → job. When anything of it is late, full or away, the answer is "not
yet" with what to look up: the write stands all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.clock import SYSTEM, Clock
from shared.errors import NotFound, WaitersFull, WeirkeeperError
from shared.jobs.port import Waits
from shared.jobs.states import COMPLETED
from shared.site.note import Written
from shared.site.search import Search

MAX_SECONDS = 2.0
SUBSCRIPTION = "corpus.index"


@dataclass(frozen=True, slots=True)
class Receipt:
    """Whether the index has a write.

    Attributes:
        indexed: it has: the job completed.
        index_job_id: the job to look up; None while the event has not become one.
    """

    indexed: bool
    index_job_id: str | None


def receipt(
    written: Written,
    waits: Waits,
    search: Search,
    *,
    max_seconds: float = MAX_SECONDS,
    clock: Clock = SYSTEM,
) -> Receipt:
    """Wait until a write is indexed, at most `max_seconds` in all."""
    if not written.changed:
        return Receipt(_known(written, search), None)
    deadline = clock.monotonic() + max_seconds
    job_id = None
    try:
        job_id = waits.await_fanout(written.event_id, SUBSCRIPTION, max_seconds)
        if job_id is None:
            return Receipt(indexed=False, index_job_id=None)
        answer = waits.wait(job_id, max(0.0, deadline - clock.monotonic()))
    except (WaitersFull, NotFound):
        return Receipt(indexed=False, index_job_id=job_id)
    except WeirkeeperError as error:
        if not error.transient:
            raise
        return Receipt(indexed=False, index_job_id=job_id)
    return Receipt(answer.finished and answer.state == COMPLETED, job_id)


def _known(written: Written, search: Search) -> bool:
    """Nothing changed, so no job comes: the index has the note's version, or not."""
    found = search.known([written.id]).get(written.id)
    return found is not None and found.version >= written.version
