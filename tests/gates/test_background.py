"""No bare background work: what runs by itself is a service, a child of the pool, or a job.

A thread, a process, a task or a timer that nobody owns is stopped by nobody and missed by nobody.
Who may start threads and processes stands in test_uses; here are the quieter ways: an event loop's
timers, alarms, threads behind asyncio's back, and loops that do something every so often. Periodic
work goes through the scheduler of the queue processes, or is a `ticker` (shared.services.service).

A timer loop is a `while` that waits for a bounded time in its body. Those that stand here wait for
something (a database, a program, a caller's deadline) or are the body of a service.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.gates.source import Source, complaints, planted, product, red

TIMERS = (
    "call_later",
    "call_at",
    "setitimer",
    "alarm",
    "run_in_executor",
    "to_thread",
    "add_signal_handler",
)
TIMER_PLACES = (
    "shared/services/",
    # A caller's event loop is not ours to block: LISTEN opens beside it, and the wait is awaited.
    "shared/postgres/application/waits_async.py",
    # Nor are looks and enqueues on sessions of the runtime: short, bounded, and awaited.
    "shared/postgres/application/runtime_async.py",
)
LOOP_PLACES = ("shared/services/", "workers/pool/")
WAITS = ("wait", "sleep", "select", "wait_until_gone")
LOOPS = {
    # A service's body: its own ServiceThread runs it, and its stop ends every wait in it.
    ("metrics/collector.py", "_loop"),
    ("relay/main.py", "_rest"),
    ("shared/postgres/processes/presence.py", "_live"),
    ("shared/postgres/processes/presence.py", "_loop"),
    # Waits for a database, in the program's own start.
    ("shared/postgres/schema/boot.py", "wait_for_database"),
    ("weirkeeper/server/migrate.py", "_until_done"),
    ("workers/main.py", "_begin_life"),
    # A test waits for a file: never in a process that nobody tries.
    ("shared/failpoints.py", "_pause"),
    # A caller waits, until its own deadline, or until what it started has ended.
    ("panel/cli/demonstration.py", "_is_indexed"),
    ("panel/cli/commands/events.py", "_awaited"),
    ("panel/cli/commands/drain.py", "_settled"),
    ("panel/cli/commands/status.py", "_settled"),
    ("panel/cli/webhooks/deliveries.py", "_watched"),
    ("shared/memory/runtime.py", "_until"),
    ("shared/postgres/application/waits.py", "_until"),
    # The server waits for its programs.
    ("weirkeeper/server/leftovers.py", "wait_for_end"),
    ("weirkeeper/server/ready.py", "wait"),
}


def timers(source: Source) -> Iterator[str]:
    """Complain about each timer, alarm or hidden thread."""
    if source.within(TIMER_PLACES):
        return
    for call, name in source.calls():
        if name.rpartition(".")[2] in TIMERS:
            yield f"{source.path}:{call.lineno}: {name}: nobody owns it; make it a service"


def loops(source: Source) -> Iterator[str]:
    """Complain about each loop that waits for a bounded time."""
    if source.within(LOOP_PLACES):
        return
    for function in source.walk(ast.FunctionDef, ast.AsyncFunctionDef):
        if (source.path, function.name) in LOOPS:  # type: ignore[attr-defined]
            continue
        for loop in own(function):
            if isinstance(loop, ast.While) and any(map(bounded, own(loop))):
                name = function.name  # type: ignore[attr-defined]
                yield f"{source.path}:{loop.lineno}: a timer loop in {name}"


def own(parent: ast.AST) -> Iterator[ast.AST]:
    """Nodes below, but not those of functions that are defined there."""
    for node in ast.iter_child_nodes(parent):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from own(node)


def bounded(node: ast.AST) -> bool:
    """Whether it is a call that waits for a time that it is given."""
    if not isinstance(node, ast.Call) or not (node.args or node.keywords):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in WAITS


def test_no_timer_that_nobody_owns():
    assert complaints(timers, product()) == []


def test_no_timer_loop_outside_services():
    assert complaints(loops, product()) == []


def test_every_exception_is_still_needed():
    elsewhere = [Source("elsewhere/" + s.path, s.text) for s in product()]
    found = {
        said.split(":")[0] + said.rpartition(" in ")[2] for s in elsewhere for said in loops(s)
    }
    assert {f"elsewhere/{path}{function}" for path, function in LOOPS} <= found
    for place in TIMER_PLACES:
        assert any(list(timers(s)) for s in elsewhere if s.path.startswith(f"elsewhere/{place}"))


def test_planted_timers_are_seen():
    assert red(timers, "def f(loop):\n    loop.call_later(3, tick)")
    assert red(timers, "import signal\nsignal.setitimer(signal.ITIMER_REAL, 1, 1)")
    assert red(timers, "from signal import alarm as a\na(3)")
    assert red(timers, "import asyncio\nasync def f():\n    await asyncio.to_thread(work)")
    assert red(timers, "async def f(loop):\n    await loop.run_in_executor(None, work)")
    assert not list(timers(planted("loop.call_later(3, f)", "shared/services/planted.py")))


def test_planted_loops_are_seen():
    every_minute = """
        def f(stop):
            while not stop.wait(60):
                tick()
    """
    polling = """
        async def f():
            while True:
                await look()
                await asyncio.sleep(0.5)
    """
    selecting = """
        def f(fds):
            while True:
                if select.select(fds, [], [], 1.0)[0]:
                    read()
    """
    for text in (every_minute, polling, selecting):
        assert red(loops, text), text
        assert not list(loops(planted(text, "shared/services/planted.py")))
        assert not list(loops(planted(text, "workers/pool/planted.py")))


def test_other_loops_are_left_alone():
    until_told = """
        def f(queue, stop):
            while item := queue.get():
                handle(item)
            stop.wait()
    """
    handed_over = """
        def f(names):
            while names:
                start(lambda: stop.wait(3))
                names.pop()
    """
    for text in (until_told, handed_over):
        assert not red(loops, text), text
