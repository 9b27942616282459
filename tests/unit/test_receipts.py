"""A receipt says what is true, within one deadline."""

from __future__ import annotations

import pytest

from shared.errors import DatabaseRefused, DatabaseUnavailable, NotFound, WaitersFull
from shared.jobs.port import Wait
from shared.site.note import Ref, Written
from shared.site.receipts import Receipt, receipt

CHANGED = Written("1", 2, "path", "event", changed=True)
SAME = Written("1", 2, "path", "event", changed=False)


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


class Waits:
    """Answers as told, after as many seconds as told; keeps what it was asked."""

    def __init__(self, clock, job="7", answer=None, fanout=0.0):
        self.clock, self.job, self.fanout = clock, job, fanout
        self.answer = answer or Wait("completed", finished=True)
        self.asked = []

    def await_fanout(self, event_id, subscription, seconds):
        self.asked.append((event_id, subscription, seconds))
        self.clock.now += self.fanout
        return self._or_raise(self.job)

    def wait(self, job_id, seconds):
        self.asked.append((job_id, round(seconds, 6)))
        return self._or_raise(self.answer)

    @staticmethod
    def _or_raise(value):
        if isinstance(value, Exception):
            raise value
        return value


class Search:
    def __init__(self, version=None):
        self.version = version

    def known(self, ids):
        return {} if self.version is None else {i: Ref(i, self.version, "path") for i in ids}


def got(written=CHANGED, version=None, **waits):
    clock = Clock()
    asked = Waits(clock, **waits)
    return receipt(written, asked, Search(version), clock=clock), asked.asked


def test_indexed_once_the_job_completed():
    answer, asked = got(fanout=0.5)
    assert answer == Receipt(indexed=True, index_job_id="7")
    assert asked == [("event", "corpus.index", 2.0), ("7", 1.5)]


def test_one_deadline_covers_both_waits():
    answer, asked = got(fanout=3.0, answer=Wait("pending", finished=False))
    assert answer == Receipt(indexed=False, index_job_id="7")
    assert asked[1] == ("7", 0.0)


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ({"job": None}, Receipt(indexed=False, index_job_id=None)),
        ({"job": WaitersFull("full")}, Receipt(indexed=False, index_job_id=None)),
        ({"job": DatabaseUnavailable("away")}, Receipt(indexed=False, index_job_id=None)),
        ({"answer": WaitersFull("full")}, Receipt(indexed=False, index_job_id="7")),
        ({"answer": DatabaseUnavailable("away")}, Receipt(indexed=False, index_job_id="7")),
        ({"answer": NotFound("pruned")}, Receipt(indexed=False, index_job_id="7")),
        ({"answer": Wait("running", finished=False)}, Receipt(indexed=False, index_job_id="7")),
        ({"answer": Wait("discarded", finished=True)}, Receipt(indexed=False, index_job_id="7")),
    ],
)
def test_anything_else_is_not_yet_and_never_an_error(waits, expected):
    assert got(**waits)[0] == expected


def test_what_waiting_cannot_mend_is_told():
    with pytest.raises(DatabaseRefused):
        got(job=DatabaseRefused("permission denied"))


@pytest.mark.parametrize(("version", "indexed"), [(2, True), (3, True), (1, False), (None, False)])
def test_a_write_that_changed_nothing_waits_for_nothing(version, indexed):
    answer, asked = got(SAME, version)
    assert (answer, asked) == (Receipt(indexed=indexed, index_job_id=None), [])
