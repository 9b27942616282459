"""What a child tells of how far its job is, in memory that it shares with its parent."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from workers.pool.progress import Progress


@pytest.fixture
def ends():
    """The child's and the parent's, of one memory."""
    with (
        closing(Progress.create()) as child,
        closing(Progress(os.dup(child.memory), os.dup(child.permits))) as parent,
    ):
        yield child, parent


def test_nothing_is_there_before_something_is_told(ends):
    _, parent = ends
    assert parent.told(0) is None
    assert not parent.told_anew()


def test_the_last_word_of_that_job_counts(ends):
    child, parent = ends
    for n in range(100):
        child.tell(3, n, 100.0)
    assert parent.told_anew()
    assert not parent.told_anew()
    assert parent.told(3) == (99.0, 100.0)
    assert parent.told(4) is None  # the next job has not told anything
    child.tell(4, 0.5, None)
    assert parent.told_anew()
    assert (parent.told(3), parent.told(4)) == (None, (0.5, None))


def test_the_same_word_again_is_one_more(ends):
    child, parent = ends
    child.tell(1, 1.0, None)
    assert parent.told_anew()
    child.tell(1, 1.0, None)
    assert parent.told_anew()


def test_it_does_not_touch_the_word_that_names_the_job(ends):
    child, parent = ends
    child.move(7)
    before = parent.at()
    child.tell(7, 1e300, 2.0)
    assert parent.at() == before
    assert not child.asked(7)
    assert parent.told(7 + (1 << 16)) == (1e300, 2.0)  # numbers wrap
