"""The words and permits that parent and child share."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from workers.pool.progress import Progress, behind


@pytest.fixture
def pair() -> Iterator[tuple[Progress, Progress]]:
    """The parent's, and the child's, as after the hello."""
    child = Progress.create()
    parent = Progress(os.dup(child.memory), os.dup(child.permits))
    yield parent, child
    parent.close()
    child.close()


def test_the_word_tells_number_and_moment(pair):
    parent, child = pair
    assert parent.at() == (0, 0.0)
    moment = child.move(70_000)
    number, seen = parent.at()
    assert number == 70_000 % 2**16
    assert seen == pytest.approx(moment, abs=2e-6)
    assert seen == pytest.approx(time.monotonic(), abs=5)
    assert behind(number, 69_998) == 2
    assert behind(number, 70_001) > 60_000


def test_a_request_to_stop_names_one_job(pair):
    parent, child = pair
    assert not child.asked(70_000)
    parent.ask(70_000)
    assert child.asked(70_000)
    assert not child.asked(70_000 % 2**16)
    assert not child.asked(70_001)


def test_a_permit_is_taken_or_taken_back(pair):
    parent, child = pair
    assert not child.begin()
    parent.permit(3)
    assert child.begin()
    assert parent.take_back() == 2
    assert not child.begin()


def test_no_permit_is_had_twice_and_none_is_lost(pair):
    """20,000 permits, while one side takes and the other takes back."""
    parent, child = pair
    taken = 0
    over = threading.Event()

    def take() -> None:
        nonlocal taken
        while not over.is_set():
            taken += child.begin()

    thread = threading.Thread(target=take)
    thread.start()
    back = 0
    for _ in range(400):
        parent.permit(50)
        back += parent.take_back()
    over.set()
    thread.join(30)
    assert parent.take_back() == 0
    assert back + taken == 20_000
