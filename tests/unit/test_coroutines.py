"""The event loop of async handlers: used again, left clean, interrupted where it stands."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import closing, suppress

import pytest

from shared.services import coroutines as module
from shared.services.coroutines import Coroutines


@pytest.fixture
def left():
    return []


@pytest.fixture
def run(left):
    with closing(Coroutines()) as made:
        yield lambda coroutine: made.run(coroutine, left.extend)


class Turn:
    """Lets the loop turn once."""

    def __await__(self):
        yield


turn = Turn()


async def value(given):
    await turn
    return given


async def for_ever():
    await asyncio.Event().wait()


def test_it_answers_and_uses_one_loop(run, left):
    async def loop():
        return asyncio.get_running_loop()

    assert run(value(3)) == 3
    assert run(loop()) is run(loop())
    assert left == []


def test_an_error_comes_out_and_the_loop_goes_on(run):
    async def fail():
        await turn
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(fail())
    assert run(value(1)) == 1


def test_what_is_left_behind_is_cancelled_and_named(run, left):
    ended = []

    async def straggler():
        try:
            await for_ever()
        finally:
            ended.append("straggler")

    async def leaves():
        leaves.task = asyncio.create_task(straggler())
        await turn
        return "done"

    assert run(leaves()) == "done"
    assert ended == ["straggler"]
    assert [name.rpartition(".")[2] for name in left] == ["straggler"]


def test_a_loop_whose_tasks_will_not_end_is_given_up(run, left, monkeypatch):
    monkeypatch.setattr(module, "LINGER", 0.05)

    async def stubborn():
        while True:
            with suppress(asyncio.CancelledError):
                await for_ever()

    async def leaves():
        leaves.task = asyncio.create_task(stubborn())
        await turn
        return asyncio.get_running_loop()

    async def loop():
        return asyncio.get_running_loop()

    old = run(leaves())
    assert old.is_closed()
    assert run(loop()) is not old
    assert len(left) == 1


def test_a_thread_that_runs_a_loop_is_told_what_to_do(run):
    async def within():
        return run(value(1))

    with pytest.raises(RuntimeError, match=r"asyncio\.to_thread"):
        asyncio.run(within())


@pytest.fixture
def signalled():
    """What a SIGUSR1 does in this process: cancel what awaits, else raise, as a child does."""
    with closing(Coroutines()) as made:
        seen = []

        def asked(_number, _frame):
            seen.append(made.interrupt())
            if not seen[-1]:
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR1, asked)
        yield made, seen
        signal.signal(signal.SIGUSR1, before)


def later(loop, seconds=0.05):
    loop.call_later(seconds, os.kill, os.getpid(), signal.SIGUSR1)


def test_a_coroutine_that_awaits_is_cancelled(signalled, left):
    made, seen = signalled
    cleaned = []

    async def waits():
        later(asyncio.get_running_loop())
        try:
            await for_ever()
        finally:
            await turn
            cleaned.append(True)

    with pytest.raises(asyncio.CancelledError):
        made.run(waits(), left.extend)
    assert (seen, cleaned) == ([True], [True])


def test_a_coroutine_may_answer_after_it_was_cancelled(signalled, left):
    made, _ = signalled

    async def waits():
        later(asyncio.get_running_loop())
        try:
            await for_ever()
        except asyncio.CancelledError:
            return "done all the same"

    assert made.run(waits(), left.extend) == "done all the same"


def test_code_that_does_not_await_is_interrupted_where_it_stands(signalled, left):
    made, seen = signalled

    async def computes():
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(10**9):
            pass

    with pytest.raises(KeyboardInterrupt):
        made.run(computes(), left.extend)
    assert seen == [False]
    assert made.run(value(1), left.extend) == 1


def test_an_interrupt_that_hits_another_task_ends_the_coroutine_too(signalled, left):
    made, seen = signalled
    ended = []

    async def other():
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(10**9):
            pass

    async def waits():
        waits.task = asyncio.create_task(other())
        try:
            await for_ever()
        finally:
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        made.run(waits(), left.extend)
    assert (seen, ended) == ([False], [True])


def test_without_a_coroutine_there_is_nothing_to_cancel():
    assert Coroutines().interrupt() is False
