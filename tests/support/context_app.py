"""An application for tests of what handlers may be and use: async ones, the network, the trace."""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from shared.config.settings import Settings
from shared.events.event import Event
from shared.jobs.context import Context
from tests.support.app import SOON, effect, write
from weirkeeper import (
    App,
    Completed,
    EventType,
    Jobs,
    Kind,
    Limits,
    Outage,
    Queue,
    Recorder,
    Subscription,
)

APP = "tests.support.context_app:app"


async def echo(ctx: Context, args: dict[str, Any]) -> Completed:
    with effect(ctx, loop=id(asyncio.get_running_loop())):
        await asyncio.sleep(0)
        return Completed(args)


async def await_for_ever(ctx: Context, args: dict[str, Any]) -> Completed | None:
    """Awaits; cleans up when it is stopped, and then answers or not."""
    try:
        write(ctx, "begin")
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        write(ctx, "cancelled", asked=ctx.cancelled())
        await asyncio.sleep(args.get("cleanup", 0))
        if "answer" in args:
            return Completed(args["answer"])
        raise
    finally:
        write(ctx, "cleaned")
    return None


def deaf() -> None:
    time.sleep(600)


async def block(ctx: Context, args: dict[str, Any]) -> None:
    """Does not await at all."""
    try:
        write(ctx, "begin")
        deaf()
    finally:
        write(ctx, "cleaned")


async def query(ctx: Context, args: dict[str, Any]) -> None:
    """Waits in the driver."""
    with ctx.connection() as conn:
        write(ctx, "begin")
        conn.execute("select pg_sleep(600)")


async def leave_tasks(ctx: Context, args: dict[str, Any]) -> Completed:
    async def straggler() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            write(ctx, "straggler ended")

    task = asyncio.create_task(straggler())
    await asyncio.sleep(0)
    with effect(ctx):
        return Completed(not task.done())


def _connect(args: dict[str, Any]) -> None:
    socket.create_connection((args["host"], args["port"]), timeout=5).close()


def _fetch(args: dict[str, Any]) -> None:
    url = f"http://{args['host']}:{args['port']}/"
    with urllib.request.urlopen(url, timeout=5) as answer:
        answer.read()


def _resolve(args: dict[str, Any]) -> None:
    socket.getaddrinfo("an.example", 80)


def _datagram(args: dict[str, Any]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.sendto(b"x", (args["host"], args["port"]))


def _asynchronous(args: dict[str, Any]) -> None:
    async def connect() -> None:
        _, writer = await asyncio.open_connection(args["host"], args["port"])
        writer.close()

    asyncio.run(connect())


CALLS: dict[str, Callable[[dict[str, Any]], None]] = {
    "connect": _connect,
    "fetch": _fetch,
    "resolve": _resolve,
    "datagram": _datagram,
    "async": _asynchronous,
}


def network(ctx: Context, args: dict[str, Any]) -> Completed:
    """Calls out while a transaction is open, or as the args say."""
    call, when = CALLS[args["call"]], args["when"]
    with effect(ctx):
        if when == "before":
            call(args)
        with ctx.connection() as conn:
            if when == "between":
                conn.execute("select 1")
                call(args)
            with conn.transaction():
                conn.execute("select 1")
                if when == "inside":
                    call(args)
        if when == "after":
            call(args)
        return Completed(when)


def kept(ctx: Context, args: dict[str, Any]) -> None:
    """Calls through a connection that was opened before the transaction."""
    client = http.client.HTTPConnection(args["host"], args["port"], timeout=5)
    client.request("GET", "/")
    client.getresponse().read()
    with effect(ctx), ctx.connection() as conn, conn.transaction():
        client.request("GET", "/")


async def network_async(ctx: Context, args: dict[str, Any]) -> None:
    with effect(ctx), ctx.connection() as conn, conn.transaction():
        await asyncio.open_connection(args["host"], args["port"])


def own_database(ctx: Context, args: dict[str, Any]) -> None:
    """Another connection to the job's own database is no network call."""
    with effect(ctx), ctx.connection() as conn, conn.transaction():
        host, port = conn.info.host, conn.info.port
        if not host.startswith("/"):
            socket.create_connection((host, port), timeout=5).close()
        with ctx.connection() as other:
            other.execute("select 1")


def miss(ctx: Context, args: dict[str, Any]) -> None:
    write(ctx, "begin")
    raise LookupError("the search server is away")


def surroundings(ctx: Context, args: dict[str, Any]) -> Completed:
    """What the child was given, and what the kernel holds against it."""
    status = Path("/proc/self/status").read_text()
    begun = Path("/proc/self/environ").read_bytes().split(b"\0")
    shown = subprocess.run(["env"], capture_output=True, text=True, timeout=10, check=True)
    with effect(ctx):
        return Completed(
            {
                "variables": dict(os.environ),
                "begun": sorted(line.partition(b"=")[0].decode() for line in begun if line),
                "program": sorted(line.partition("=")[0] for line in shown.stdout.splitlines()),
                "no_new_privileges": "NoNewPrivs:\t1" in status,
            }
        )


def without_database(ctx: Context, args: dict[str, Any]) -> Completed:
    """Looks for a way to the database, wherever it is told of."""
    tries: dict[str, str] = {}
    for name, way in (
        ("context", lambda: ctx.connection().__enter__()),
        ("driver", lambda: psycopg.connect("", connect_timeout=5)),
        ("settings", lambda: Settings.load().database()),
    ):
        try:
            way()
            tries[name] = "found"
        except Exception as error:  # noqa: BLE001  (whatever it is, it is no connection)
            tries[name] = f"{type(error).__name__}: {error}"
    held = [str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    ctx.log.warning("looked around")
    ctx.progress(1, 2)
    ended = surroundings(ctx, args)
    return Completed({**ended.result, "tries": tries, "held": held, "pid": os.getpid()})


def hog(ctx: Context, args: dict[str, Any]) -> Completed:
    with effect(ctx):
        return Completed(len(bytearray(args["mib"] << 20)) >> 20)


def open_many(ctx: Context, args: dict[str, Any]) -> Completed:
    with effect(ctx), ExitStack() as stack:
        for _ in range(args["files"]):
            stack.enter_context(Path("/dev/null").open())
        return Completed(args["files"])


def burn(ctx: Context, args: dict[str, Any]) -> None:
    with effect(ctx):
        end = time.monotonic() + args["seconds"]
        while time.monotonic() < end:
            sum(range(1000))


def traced(ctx: Context, args: dict[str, Any]) -> Completed:
    """Enqueues and records more, with its own trace or that of the job."""
    with effect(ctx), ctx.connection() as conn, conn.transaction():
        if args.get("more", 0) > 0:
            Jobs(conn).enqueue("t.traced", {"more": args["more"] - 1})
        if "event" in args:
            Recorder(conn).record("t.happened", subject="s")
        return Completed(ctx.trace)


async def traced_async(ctx: Context, args: dict[str, Any]) -> None:
    with effect(ctx), ctx.connection() as conn, conn.transaction():
        Jobs(conn).enqueue_many("t.traced", [{}, {}])


def heard(ctx: Context, args: dict[str, Any], event: Event) -> Completed:
    with effect(ctx):
        return Completed(ctx.trace)


@contextmanager
def noted(ctx: Context) -> Iterator[None]:
    """A hook that writes how each run ended."""
    try:
        yield
    finally:
        write(ctx, "hook", outcome=ctx.outcome)


def _kind(name: str, **more: Any) -> Kind:
    more.setdefault("backoff", SOON)
    more.setdefault("max_attempts", 1)
    handler = more.pop("handler", name)
    return Kind(f"t.{name}", more.pop("queue", "t"), f"tests.support.context_app:{handler}", **more)


app = App(
    include_site=False,
    environment=("TEST_*",),
    queues=(
        Queue("t", children=2, timeout=30, poll=0.1, awaited=True),
        Queue("u", children=1, new_privileges=True),
    ),
    kinds=(
        _kind("echo", queue="u"),
        _kind("await_for_ever", timeout=0.5),
        _kind("block", timeout=0.5),
        _kind("query", timeout=0.5),
        _kind("leave_tasks"),
        _kind("network"),
        _kind("kept"),
        _kind("network_async"),
        _kind("own_database"),
        _kind("surroundings"),
        _kind("without_database", database=False),
        _kind("hog_without_database", handler="hog", database=False, limits=Limits(memory_mib=200)),
        _kind("block_without_database", handler="block", database=False, timeout=0.5),
        _kind(
            "miss_without_database",
            handler="miss",
            database=False,
            outage=Outage((LookupError,), delay=60),
        ),
        _kind("surroundings_of_u", handler="surroundings", queue="u"),
        _kind("hog", queue="u", limits=Limits(memory_mib=200)),
        _kind("hog_freely", handler="hog", queue="u"),
        _kind("open_many", queue="u", limits=Limits(open_files=64)),
        _kind("open_freely", handler="open_many", queue="u"),
        _kind("burn", queue="u", limits=Limits(cpu_seconds=1)),
        _kind("traced"),
        _kind("traced_async"),
    ),
    event_types=(EventType("t.happened", "Something happened.", "what it happened to"),),
    subscriptions=(
        Subscription(
            "t.heard", ("t.happened",), "t", "tests.support.context_app:heard", backoff=SOON
        ),
    ),
    hooks=("tests.support.context_app:noted",),
)
