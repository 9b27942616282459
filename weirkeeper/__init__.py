"""Weirkeeper: the one name that an application imports.

Stands above everything: it hands on the public names of `shared` and adds none of its own. It is
lazy (PEP 562): `weirkeeper.identity`, which checks that `shared` is ours, must be importable before
`shared` is, and a program that only enqueues loads nothing else.

    import psycopg, weirkeeper

    with psycopg.connect(url) as conn:                       # the application's own transaction
        conn.execute("insert into orders …")
        weirkeeper.Recorder(conn).record("order.paid", subject="order/17")
        job_id = weirkeeper.Jobs(conn).enqueue("report.daily", {"day": "2026-11-29"})
    with weirkeeper.Runtime(url, "shop") as runtime:         # once a process, for all its threads
        runtime.wait(job_id, 2)                              # a Wait; its bound may pass first
        runtime.explain(job_id).sentence                     # why it stands where it stands
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.app import App as App
    from shared.backoff import Backoff as Backoff
    from shared.config.queues import Queue as Queue
    from shared.errors import ConfigurationError as ConfigurationError
    from shared.errors import Conflict as Conflict
    from shared.errors import DatabaseRefused as DatabaseRefused
    from shared.errors import DatabaseUnavailable as DatabaseUnavailable
    from shared.errors import InvalidArguments as InvalidArguments
    from shared.errors import NetworkInTransaction as NetworkInTransaction
    from shared.errors import NoDatabase as NoDatabase
    from shared.errors import NotFound as NotFound
    from shared.errors import UnknownEventType as UnknownEventType
    from shared.errors import UnknownKind as UnknownKind
    from shared.errors import ValuesRefused as ValuesRefused
    from shared.errors import WeirkeeperError as WeirkeeperError
    from shared.events.event import Event as Event
    from shared.events.subscriptions import Subscription as Subscription
    from shared.events.type import EventType as EventType
    from shared.jobs.context import Context as Context
    from shared.jobs.inspect import Attempt as Attempt
    from shared.jobs.inspect import Explanation as Explanation
    from shared.jobs.inspect import Job as Job
    from shared.jobs.inspect import Overview as Overview
    from shared.jobs.inspect import PeriodicStatus as PeriodicStatus
    from shared.jobs.inspect import Progress as Progress
    from shared.jobs.kinds import Kind as Kind
    from shared.jobs.kinds import Rate as Rate
    from shared.jobs.limits import Limits as Limits
    from shared.jobs.outages import Outage as Outage
    from shared.jobs.outcomes import Completed as Completed
    from shared.jobs.outcomes import Discard as Discard
    from shared.jobs.outcomes import Retry as Retry
    from shared.jobs.outcomes import Snooze as Snooze
    from shared.jobs.periodic import Periodic as Periodic
    from shared.jobs.port import EnqueueOpts as EnqueueOpts
    from shared.jobs.port import JobFilter as JobFilter
    from shared.jobs.port import Unique as Unique
    from shared.jobs.port import Wait as Wait
    from shared.postgres.application.jobs import PostgresJobs as Jobs
    from shared.postgres.application.jobs_async import PostgresAsyncJobs as AsyncJobs
    from shared.postgres.application.runtime import PostgresRuntime as Runtime
    from shared.postgres.application.runtime_async import PostgresAsyncRuntime as AsyncRuntime
    from shared.postgres.application.waits import PostgresWaits as Waits
    from shared.postgres.application.waits_async import PostgresAsyncWaits as AsyncWaits
    from shared.postgres.events.recorder import PostgresRecorder as Recorder
    from shared.postgres.events.recorder_async import PostgresAsyncRecorder as AsyncRecorder

# Public name → where it lives.
_HOMES = {
    "App": "shared.app:App",
    "AsyncJobs": "shared.postgres.application.jobs_async:PostgresAsyncJobs",
    "AsyncRecorder": "shared.postgres.events.recorder_async:PostgresAsyncRecorder",
    "AsyncRuntime": "shared.postgres.application.runtime_async:PostgresAsyncRuntime",
    "AsyncWaits": "shared.postgres.application.waits_async:PostgresAsyncWaits",
    "Attempt": "shared.jobs.inspect:Attempt",
    "Backoff": "shared.backoff:Backoff",
    "Completed": "shared.jobs.outcomes:Completed",
    "ConfigurationError": "shared.errors:ConfigurationError",
    "Conflict": "shared.errors:Conflict",
    "Context": "shared.jobs.context:Context",
    "DatabaseRefused": "shared.errors:DatabaseRefused",
    "DatabaseUnavailable": "shared.errors:DatabaseUnavailable",
    "Discard": "shared.jobs.outcomes:Discard",
    "EnqueueOpts": "shared.jobs.port:EnqueueOpts",
    "Event": "shared.events.event:Event",
    "EventType": "shared.events.type:EventType",
    "Explanation": "shared.jobs.inspect:Explanation",
    "InvalidArguments": "shared.errors:InvalidArguments",
    "Job": "shared.jobs.inspect:Job",
    "JobFilter": "shared.jobs.port:JobFilter",
    "Jobs": "shared.postgres.application.jobs:PostgresJobs",
    "Kind": "shared.jobs.kinds:Kind",
    "Limits": "shared.jobs.limits:Limits",
    "NetworkInTransaction": "shared.errors:NetworkInTransaction",
    "NoDatabase": "shared.errors:NoDatabase",
    "NotFound": "shared.errors:NotFound",
    "Outage": "shared.jobs.outages:Outage",
    "Overview": "shared.jobs.inspect:Overview",
    "Periodic": "shared.jobs.periodic:Periodic",
    "PeriodicStatus": "shared.jobs.inspect:PeriodicStatus",
    "Progress": "shared.jobs.inspect:Progress",
    "Queue": "shared.config.queues:Queue",
    "Rate": "shared.jobs.kinds:Rate",
    "Recorder": "shared.postgres.events.recorder:PostgresRecorder",
    "Retry": "shared.jobs.outcomes:Retry",
    "Runtime": "shared.postgres.application.runtime:PostgresRuntime",
    "Snooze": "shared.jobs.outcomes:Snooze",
    "Subscription": "shared.events.subscriptions:Subscription",
    "Unique": "shared.jobs.port:Unique",
    "UnknownEventType": "shared.errors:UnknownEventType",
    "UnknownKind": "shared.errors:UnknownKind",
    "ValuesRefused": "shared.errors:ValuesRefused",
    "Wait": "shared.jobs.port:Wait",
    "Waits": "shared.postgres.application.waits:PostgresWaits",
    "WeirkeeperError": "shared.errors:WeirkeeperError",
}

__all__ = [
    "App",
    "AsyncJobs",
    "AsyncRecorder",
    "AsyncRuntime",
    "AsyncWaits",
    "Attempt",
    "Backoff",
    "Completed",
    "ConfigurationError",
    "Conflict",
    "Context",
    "DatabaseRefused",
    "DatabaseUnavailable",
    "Discard",
    "EnqueueOpts",
    "Event",
    "EventType",
    "Explanation",
    "InvalidArguments",
    "Job",
    "JobFilter",
    "Jobs",
    "Kind",
    "Limits",
    "NetworkInTransaction",
    "NoDatabase",
    "NotFound",
    "Outage",
    "Overview",
    "Periodic",
    "PeriodicStatus",
    "Progress",
    "Queue",
    "Rate",
    "Recorder",
    "Retry",
    "Runtime",
    "Snooze",
    "Subscription",
    "Unique",
    "UnknownEventType",
    "UnknownKind",
    "ValuesRefused",
    "Wait",
    "Waits",
    "WeirkeeperError",
]


if not TYPE_CHECKING:  # else a checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        """Import a public name on first use."""
        if name not in _HOMES:
            raise AttributeError(f"module 'weirkeeper' has no attribute {name!r}")
        module, _, attribute = _HOMES[name].partition(":")
        return getattr(import_module(module), attribute)
