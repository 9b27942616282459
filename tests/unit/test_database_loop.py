"""Waking the database's loop: no wake is lost, whatever comes between two instructions."""

from __future__ import annotations

import os
import select

import pytest

from workers.database_loop import Wake


def ready(wake):
    return bool(select.select([wake.fileno()], [], [], 0)[0])


def test_a_wake_is_there_until_it_is_taken():
    wake = Wake()
    assert not ready(wake)
    wake()
    wake()
    assert ready(wake)
    wake.clear()
    assert not ready(wake)
    wake()
    assert ready(wake)


@pytest.mark.parametrize("when", ["before the read", "after the read"])
def test_a_wake_while_another_is_taken_does_not_silence_later_ones(monkeypatch, when):
    wake = Wake()
    original = os.eventfd_read

    def read(descriptor):
        if when == "before the read":
            wake()
        value = original(descriptor)
        if when == "after the read":
            wake()
        return value

    wake()
    with monkeypatch.context() as patched:
        patched.setattr("os.eventfd_read", read)
        wake.clear()
    wake()
    assert ready(wake)
