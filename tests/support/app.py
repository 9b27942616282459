"""A small application for tests: one kind for each way that a job can go.

Every run appends a line to the effects log (the file that the environment names), synced before
the handler goes on, so that a test can tell what really happened whatever the database says.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.backoff import Backoff
from shared.events.event import Event
from shared.jobs.context import Context
from weirkeeper import App, Completed, Discard, EventType, Kind, Queue, Retry, Snooze, Subscription

EFFECTS = "TEST_EFFECTS"
SOON = Backoff(base=0.05, factor=1.0)


@contextmanager
def effect(ctx: Context, **more: Any) -> Iterator[None]:
    """Write when a run begins and when it ends by itself."""
    write(ctx, "begin", **more)
    yield
    write(ctx, "end")


def write(ctx: Context, what: str, **more: Any) -> None:
    line = json.dumps(
        {"what": what, "job": ctx.job_id, "attempt": ctx.attempt, "run": ctx.run, "kind": ctx.kind,
         "pid": os.getpid(), "at": time.monotonic(), **more}
    )  # fmt: skip
    fd = os.open(os.environ[EFFECTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode() + b"\n")
    os.fsync(fd)
    os.close(fd)


def ok(ctx: Context, args: dict[str, Any]) -> Completed:
    with effect(ctx):
        return Completed(args.get("result"))


def noop(ctx: Context, args: dict[str, Any]) -> None:
    """Nothing, not even an effect: for measurements."""


def sleep(ctx: Context, args: dict[str, Any]) -> None:
    with effect(ctx):
        time.sleep(args["seconds"])


def size(ctx: Context, args: dict[str, Any]) -> Completed:
    with effect(ctx):
        return Completed(len(args["text"]))


def fail(ctx: Context, args: dict[str, Any]) -> None:
    """Raises, the first `times` runs; `codes` says it in characters that args cannot hold."""
    with effect(ctx):
        if ctx.attempt <= args.get("times", 1_000):
            raise ValueError("".join(map(chr, args.get("codes", ()))) or args.get("message", "no"))


def answer(ctx: Context, args: dict[str, Any]) -> Any:
    """Answers with the outcome that the args name, the first `times` runs; then None."""
    with effect(ctx):
        if ctx.run > args.get("times", 1):
            return None
        return {
            "snooze": lambda: Snooze(args["seconds"]),
            "discard": lambda: Discard("not wanted"),
            "retry": lambda: Retry("later", args.get("seconds")),
            "nonsense": lambda: 42,
            "huge": lambda: Completed("x" * 40_000),
            "exit": lambda: exit(3),
        }[args["answer"]]()


def die(ctx: Context, args: dict[str, Any]) -> None:
    if "words" in args:
        print(args["words"])
    write(ctx, "begin")
    mended = Path(args.get("unless", "/nowhere")).exists()
    if ctx.attempt <= args.get("times", 1_000) and not mended:
        os.kill(os.getpid(), args.get("signal", signal.SIGKILL))


def hold_and_die(ctx: Context, args: dict[str, Any]) -> None:
    """Holds memory until the test says that it was seen, tells how far it is, and dies."""
    held = bytearray(os.urandom(1)) * (args["mib"] << 20)
    write(ctx, "begin", held=len(held))
    ctx.progress(1, 2)
    while not Path(args.get("seen", "/")).exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGSEGV)


def fork(ctx: Context, args: dict[str, Any]) -> None:
    programs = [
        subprocess.Popen(["sleep", "600"], start_new_session=alone).pid for alone in (False, True)
    ]
    write(ctx, "begin", programs=programs)
    time.sleep(600)


def stuck(ctx: Context, args: dict[str, Any]) -> None:
    """In C, holding the interpreter's lock, deaf to signals."""
    write(ctx, "begin")
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(600)


def query(ctx: Context, args: dict[str, Any]) -> Completed:
    """Through the child's own connection; the second block must find it clean."""
    with effect(ctx):
        with ctx.connection() as conn:
            conn.execute("begin")
        with ctx.connection() as conn:
            row = conn.execute("select pg_backend_pid()").fetchone()
        entries = [entry for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        sockets = sum(str(entry.readlink()).startswith("socket:") for entry in entries)
        return Completed({"backend": row[0] if row else None, "sockets": sockets})


def event(ctx: Context, args: dict[str, Any], event: Event) -> Completed:
    with effect(ctx):
        return Completed({"type": event.type, "subject": event.subject, "data": event.data})


def _kind(name: str, **more: Any) -> Kind:
    more.setdefault("backoff", SOON)
    handler = more.pop("handler", name)
    return Kind(f"t.{name}", more.pop("queue", "t"), f"tests.support.app:{handler}", **more)


app = App(
    include_site=False,
    environment=("TEST_*",),
    queues=(Queue("t", children=4, timeout=30, poll=0.1, awaited=True), Queue("u", children=1)),
    kinds=(
        _kind("ok"),
        _kind("noop", awaited=False),
        _kind("sleep"),
        _kind("pair", handler="sleep", max_per_key=2),
        _kind("size"),
        _kind("fail", max_attempts=3),
        _kind("answer", max_attempts=2),
        _kind("die", max_attempts=3),
        _kind("hold_and_die"),
        _kind("fork", timeout=0.5, max_attempts=1),
        _kind("stuck", timeout=0.5, max_attempts=1),
        _kind("query"),
    ),
    event_types=(EventType("t.happened", "Something happened.", "what it happened to"),),
    subscriptions=(
        Subscription("t.event", ("t.happened",), "t", "tests.support.app:event", backoff=SOON),
    ),
)
