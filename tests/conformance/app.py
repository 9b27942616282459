"""The application of the contract: kinds whose jobs end in every way, on queues of known sizes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.jobs.context import Context
from tests.support.app import SOON, answer, effect, write
from tests.support.waiting import until
from weirkeeper import App, Completed, Kind, Outage, Periodic, Queue, Rate

PATIENCE = 20  # seconds that a held job waits to be let go


def echo(ctx: Context, args: dict[str, Any]) -> Completed:
    with effect(ctx):
        return Completed(args)


def hold(ctx: Context, args: dict[str, Any]) -> None:
    """Runs until the file that the args name is there, or for `seconds`."""
    with effect(ctx):
        file, end = Path(args.get("file", "/nowhere")), time.monotonic() + args.get("seconds", 1e9)
        until(lambda: file.exists() or time.monotonic() >= end, PATIENCE, "the test lets go")


def stages(ctx: Context, args: dict[str, Any]) -> None:
    """Tells how far it is, very often; then runs as `hold` does, and fails."""
    for n in range(1, 5001):
        ctx.progress(n, args.get("of"))
    hold(ctx, args)
    raise ValueError("halfway")


async def coroutine(ctx: Context, args: dict[str, Any]) -> Any:
    """Answers like `answer`, after it has awaited."""
    await asyncio.wait([asyncio.get_running_loop().run_in_executor(None, str)])
    return answer(ctx, args)


def away(ctx: Context, args: dict[str, Any]) -> None:
    """What it depends on is away, the first `times` runs."""
    with effect(ctx):
        if ctx.run <= args["times"]:
            raise ConnectionRefusedError("nobody answers")


@contextmanager
def watched(ctx: Context) -> Iterator[None]:
    """Notes how jobs of one kind went."""
    if ctx.kind != "c.hooked":
        yield
        return
    try:
        yield
    except ValueError as error:
        write(ctx, "hook", outcome=ctx.outcome, error=str(error))
        raise
    write(ctx, "hook", outcome=ctx.outcome)


@contextmanager
def broken(_ctx: Context) -> Iterator[None]:
    """Fails after every job, and changes nothing by it."""
    yield
    raise RuntimeError("a hook that is broken")


def _kind(name: str, handler: str = "tests.support.app:ok", **more: Any) -> Kind:
    more.setdefault("backoff", SOON)
    return Kind(f"c.{name}", more.pop("queue", "c"), handler, **more)


HERE = "tests.conformance.app"
APP = f"{HERE}:app"
app = App(
    include_site=False,
    environment=("TEST_*",),
    queues=(
        Queue("c", children=4, timeout=30, poll=1, awaited=True),
        Queue("one", children=1, awaited=True),
        Queue("blocked", children=1, awaited=True),
        Queue("nobody", children=1),
        Queue("limited", children=3, awaited=True, cap=1),
    ),
    kinds=(
        _kind("ok"),
        _kind("echo", f"{HERE}:echo"),
        _kind("hold", f"{HERE}:hold"),
        _kind("fail", "tests.support.app:fail", max_attempts=3),
        _kind("answer", "tests.support.app:answer", max_attempts=1),
        _kind("coroutine", f"{HERE}:coroutine", max_attempts=1),
        _kind("stages", f"{HERE}:stages", max_attempts=1),
        _kind("hooked", "tests.support.app:fail", max_attempts=3),
        _kind("away", f"{HERE}:away", outage=Outage(("ConnectionError",), delay=0.1)),
        _kind("slow_away", f"{HERE}:away", outage=Outage((OSError,), delay=5, horizon=60)),
        _kind("gone", f"{HERE}:away", outage=Outage((OSError,), delay=0.1, horizon=0.3)),
        _kind("listed"),
        _kind("many"),
        _kind("searched", searchable=("order", "lines")),
        _kind("counted"),
        _kind("never"),
        _kind("paused"),
        _kind("keyed", f"{HERE}:hold", max_per_key=2),
        _kind("capped", f"{HERE}:hold", queue="limited"),
        _kind("rated", rate=Rate(2, per=1)),
        _kind("rarely", rate=Rate(1, per=3600)),
        _kind("fair", queue="one", fair=True),
        _kind("tick"),
        _kind("ordered", queue="one"),
        _kind("stuck", f"{HERE}:hold", queue="blocked"),
        _kind("unclaimed", queue="nobody"),
    ),
    hooks=(f"{HERE}:watched", f"{HERE}:broken"),
    periodics=(Periodic("c.often", "c.tick", {"n": 1}, every=3600),),
)
