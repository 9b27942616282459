"""Waking the database's loop: no wake is lost, whatever comes between two instructions."""

from __future__ import annotations

import os
import select
from types import SimpleNamespace

import pytest

from tests.support.works import Clock, ScriptedWork, assignment, claim
from workers.completer import Written
from workers.database_loop import DatabaseLoop, Parts, Wake
from workers.holdings import Holdings
from workers.producer import Producer


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


def test_a_claim_that_is_under_way_is_waited_for_by_a_drain(tmp_path):
    """Else a process that stops would end with jobs claimed that nobody runs or gives back."""
    made = assignment(tmp_path, Clock())
    seen: list[bool] = []
    waiting: list[object] = []

    class Slow(ScriptedWork):
        def claim(self, kinds, limit):
            seen.append(loop.settled)
            return [claim(1)]

        def tidy(self):
            seen.append(loop.settled)

    executor = SimpleNamespace(room=lambda: 4, put=waiting.extend, waiting=waiting)
    completer = SimpleNamespace(pending=0)
    upkeep = SimpleNamespace(holdings=SimpleNamespace(held={}, owes=False))
    parts = Parts(executor, Producer(made), completer, upkeep)
    loop = DatabaseLoop(made, None, parts, Wake(), lambda: None)
    assert loop.settled
    loop._claim(Slow())
    assert seen == [False, False]
    assert not loop.settled, "it waits in the executor"
    waiting.clear()
    assert loop.settled
    made.instruments.close()


def test_a_notice_is_answered_by_a_claim_before_anything_else(tmp_path):
    """Timers and ends may be due at the same moment; whoever waits for a job does not wait for them."""
    said: list[str] = []
    clock = Clock()
    made = assignment(tmp_path, clock)
    reader, writer = os.pipe()

    class Notified(ScriptedWork):
        def fileno(self):
            return reader

        def drain(self):
            os.read(reader, 1)
            return [""]

    work = Notified()
    work.said = said
    producer = Producer(made)
    executor = SimpleNamespace(
        room=lambda: 4, put=lambda claims: said.append(f"put {len(claims)}"), poisonous=list
    )
    completer = SimpleNamespace(due_in=lambda: None, pending=0)
    holdings = SimpleNamespace(held={})
    upkeep = SimpleNamespace(
        holdings=holdings, turn=lambda _: said.append("upkeep"), waits=lambda: 5.0
    )
    wake = Wake()
    loop = DatabaseLoop(
        made, None, Parts(executor, producer, completer, upkeep), wake, lambda: None
    )
    for _ in range(3):  # until it sleeps
        wake()
        loop._turn(work)
    said.clear()
    work.claims = [[claim(1)]]
    os.write(writer, b"!")
    loop._turn(work)
    made.instruments.close()
    os.close(reader)
    os.close(writer)
    assert said == ["upkeep", "claim 4", "put 1"]
    assert list(holdings.held) == [1]


def test_an_end_that_comes_while_a_claim_is_handed_over_is_written_before_it_is_judged(tmp_path):
    """A job may be over at once, and its caller waits; what its end asks for is not forgotten."""
    made = assignment(tmp_path, Clock())
    said: list[str] = []
    ends: list[float] = []
    wake = Wake()

    class Quiet(ScriptedWork):
        def fileno(self):
            return wake.fileno()

        def tidy(self):
            said.append("tidy")

    def put(_claims):
        said.append("put")
        ends.append(0.0)
        wake()

    def flush(_work):
        said.append("flush")
        ends.clear()
        return Written([], [SimpleNamespace(delay=0)])

    executor = SimpleNamespace(room=lambda: 4, put=put)
    completer = SimpleNamespace(due_in=lambda: ends[0] if ends else None, flush=flush)
    producer = Producer(made)
    producer._asleep = True
    holdings = Holdings(made, executor, producer)
    parts = Parts(executor, producer, completer, SimpleNamespace(holdings=holdings))
    loop = DatabaseLoop(made, None, parts, wake, lambda: None)
    work = Quiet()
    work.claims = [[claim(1)]]
    loop._claim(work, 5.0)
    assert said == ["put", "flush", "tidy"]
    assert producer.waits(4) == 0.0, "a job that goes on at once is looked for at once"
    made.instruments.close()
