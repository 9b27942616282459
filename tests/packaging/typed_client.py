"""An application as strict type checkers see it; run through mypy by test_types, never imported.

`assert_type` and the errors that must be told (`type: ignore[…]`, which mypy reports when there is
none) prove that names are types, not Any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, assert_type

import psycopg

import weirkeeper
from weirkeeper import (
    App,
    Backoff,
    Completed,
    Context,
    EnqueueOpts,
    Event,
    EventType,
    Explanation,
    Job,
    JobFilter,
    Kind,
    Overview,
    Periodic,
    PeriodicStatus,
    Progress,
    Rate,
    Snooze,
    Subscription,
    Unique,
    Wait,
    ports,
)
from weirkeeper.testing import MemoryRuntime, assert_enqueued


def total(ctx: Context, args: Mapping[str, Any]) -> Completed | Snooze | None:
    assert_type(ctx.attempt, int)
    with ctx.connection() as conn:
        conn.execute("select 1")
    return Completed({"order": args["order"]})


async def ship(ctx: Context, args: dict[str, Any], event: Event) -> None:
    ctx.log.info("%s", event.subject)


HANDLER: ports.Handler = total
EVENT_HANDLER: ports.EventHandler = ship
WRONG: ports.Handler = ship  # type: ignore[assignment]
OUTCOME: ports.Outcome = Snooze(3)

app = App(
    include_site=False,
    event_types=(EventType("order.paid", "An order was paid.", "order/<number>"),),
    subscriptions=(Subscription("order.ship", ("order.*",), "notify", "client:ship"),),
    kinds=(
        Kind("order.total", "notify", "client:total", backoff=Backoff(base=2), rate=Rate(3)),
        Kind("order.wrong", "notify", "client:total", max_attempts="3"),  # type: ignore[arg-type]
    ),
    periodics=(Periodic("order.daily", "order.total", cron="30 4 * * *"),),
)


def pay(order: int, jobs: ports.Jobs, recorder: ports.Recorder) -> str:
    recorder.record("order.paid", subject=f"order/{order}")
    opts = EnqueueOpts(run_at=datetime.now(UTC), unique=Unique(by=("order",)))
    return jobs.enqueue("order.total", {"order": order}, opts)


def in_a_test() -> None:
    runtime = MemoryRuntime(app, handlers={"order.total": total})
    with runtime.transaction() as tx:
        pay(17, runtime.with_tx(tx), runtime.recorder.with_tx(tx))
    whole: ports.Runtime = runtime
    whole.stop()
    assert_type(assert_enqueued(runtime, "order.total"), list[Job])


def in_a_request(url: str, conn: psycopg.Connection[tuple[Any, ...]]) -> None:
    pay(17, weirkeeper.Jobs(conn), weirkeeper.Recorder(conn))
    with weirkeeper.Runtime(url, "shop", app) as runtime:
        whole: ports.Runtime = runtime
        job = whole.enqueue("order.total", {"order": 17})
        assert_type(runtime.wait(job, 2), Wait)
        assert_type(runtime.wait(job, 2).progress, Progress | None)
        assert_type(runtime.list(JobFilter(kind="order.total")), list[Job])
        assert_type(runtime.explain(job), Explanation)
        assert_type(runtime.periodic(), Sequence[PeriodicStatus])
        looks: ports.Inspector = runtime
        assert_type(looks.overview(), Sequence[Overview])
        runtime.enqueue(17, {})  # type: ignore[arg-type]
    print(weirkeeper.NoSuchName)  # type: ignore[attr-defined]


async def on_a_loop(url: str, conn: psycopg.AsyncConnection[Any]) -> None:
    jobs: ports.AsyncJobs = weirkeeper.AsyncJobs(conn)
    recorder: ports.AsyncRecorder = weirkeeper.AsyncRecorder(conn)
    assert_type(await recorder.record("order.paid"), str)
    async with weirkeeper.AsyncRuntime(url, "shop") as runtime:
        whole: ports.AsyncRuntime = runtime
        assert_type(await whole.with_tx(conn).enqueue("order.total", {}), str)
        assert_type(await runtime.cancel(await jobs.enqueue("order.total", {})), str)
    async with weirkeeper.AsyncWaits(url, "shop") as waits:
        bounded: ports.AsyncWaits = waits
        assert_type(await bounded.wait("1", 2), Wait)
