"""Handlers of an application with an interpreter of its own: copied into it as shop/handlers.py.

Imports nothing of Weirkeeper but its one file; `shared` and `metrics` are the application's own.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import metrics
import shared
from weirkeeper.child import Away, Completed, Discard, Retry, Snooze, handles


def effect(what, ctx, **more):
    """Note what really happened."""
    entry = {"what": what, "job": ctx.job_id, "run": ctx.run, "pid": os.getpid(), **more}
    line = json.dumps(entry) + "\n"
    with Path(os.environ["SHOP_EFFECTS"]).open("a") as file:
        file.write(line)


def before(ctx):
    """Whether this job began before."""
    file = Path(os.environ["SHOP_EFFECTS"])
    return file.exists() and f'"job": "{ctx.job_id}"' in file.read_text()


@handles("shop.look")
def look(ctx, args):
    print("looking around")
    ctx.log.warning("at %s", args["at"])
    ctx.progress(1, 2)
    threading.Thread(target=ctx.progress, args=(2, 2)).start()
    return Completed(
        {
            "args": args,
            "whose": [shared.WHOSE, metrics.WHOSE],
            "prefix": sys.prefix,
            "ours": sorted(name for name in sys.modules if name.startswith("weirkeeper")),
            "stdin": sys.stdin.read(),
            "event": ctx.event_id,
            "attempt": [ctx.attempt, ctx.max_attempts, ctx.kind, ctx.deadline > time.monotonic()],
            "fds": subprocess.run(
                ["ls", "/proc/self/fd"], capture_output=True, text=True, timeout=9, check=True
            ).stdout.split(),
        }
    )


@handles("shop.answer")
def answer(ctx, args):
    """Answers once as the args say; `run` would not tell: it counts claims."""
    if before(ctx):
        return None
    effect("begin", ctx)
    return {
        "snooze": lambda: Snooze(0.05),
        "discard": lambda: Discard("no\0w"),
        "retry": lambda: Retry("later", 0.05),
        "away": lambda: Away("the mail server"),
        "raise": lambda: {}["missing"],
        "exit": lambda: sys.exit(3),
        "nonsense": lambda: 7,
        "nan": lambda: Completed(float("nan")),
        "huge": lambda: Completed("x" * 40_000),
        "surrogate": lambda: Retry("\ud800", 0.05),
    }[args["answer"]]()


@handles("shop.sleep")
def sleep(ctx, args):
    effect("begin", ctx)
    try:
        time.sleep(args.get("seconds", 60))
    finally:
        effect("cleaned", ctx, cancelled=ctx.cancelled())
    effect("end", ctx)


async def later(ctx, args):
    await asyncio.sleep(0.01)
    return Completed("later")


HANDLERS = {"shop.later": later}
