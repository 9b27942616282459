"""A trace goes from an event to its job, to the run, and on to what that enqueues and records."""

from __future__ import annotations

import pytest

from tests.support.context_app import APP
from tests.support.queue import queue
from tests.support.waiting import until

__all__ = ["queue"]

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def started(queue):
    queue.start(WEIRKEEPER_APP=APP)
    return queue


def traces(queue, number):
    """Results (the trace that each handler saw) of so many completed jobs."""
    query = "select result from weirkeeper.attempt where outcome = 'completed' order by job_id"

    def seen():
        rows = queue.conn.execute(query).fetchall()
        return len(rows) == number and [row[0] for row in rows]

    return until(seen, 15, f"{number} jobs completed")


def test_what_a_handler_enqueues_inherits_it(started):
    started.enqueue("traced", {"more": 2}, trace=TRACE)
    assert traces(started, 3) == [TRACE] * 3
    started.enqueue("traced", {"more": 1})  # one without hands on none, in the same child
    assert traces(started, 5) == [TRACE] * 3 + [None] * 2
    started.enqueue("traced_async", trace=TRACE)
    assert traces(started, 8)[5:] == [None, TRACE, TRACE]


def test_it_goes_through_an_event(started):
    started.programs.start("relay", env=started.env | {"WEIRKEEPER_APP": APP})
    started.record(subject="s", trace=TRACE)
    assert traces(started, 1) == [TRACE]
    started.enqueue("traced", {"event": True}, trace=TRACE)
    assert traces(started, 3) == [TRACE] * 3
