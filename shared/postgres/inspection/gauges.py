"""ADAPTER: what Postgres knows of the whole deployment, as numbers for the metrics program.

Every statement is bounded: counts stop at a cap, tables that grow are reached by index, a session
for reads ends each after 2 s. One area failing leaves the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.processes.registry import LEASE, needed_by_all
from shared.postgres.queues import controls
from shared.stats import CAP, CAP_ENDED, Reading

_WORD = re.compile(r"[a-z][a-z0-9_-]{0,62}")


def open_gauges(url: str, name: str) -> Connection:
    """Open the session that gauges are read through.

    Args:
        url: libpq URI.
        name: of the session.

    Raises:
        DatabaseUnavailable: try again later.
    """
    conn = connect(url, f"{name} gauges", Use.READ)
    _rows(conn, statement("gauges/session"), {})
    return conn


def areas(known_kinds: Sequence[str]) -> Mapping[str, Callable[[Connection], list[Reading]]]:
    """What can be read, by area.

    Args:
        known_kinds: kinds that the application declares.
    """
    return {
        "queues": _queues,
        "claims": Looks().read,
        "ended": _ended,
        "outbox": _outbox,
        "leases": _leases,
        "webhooks": _webhooks,
        "processes": _processes,
        "server": _server,
        "drains": _drains,
        "paused": _paused,
        "periodic": _periodic,
        "kinds": lambda conn: _strangers(conn, known_kinds),
    }


def _queues(conn: Connection) -> list[Reading]:
    found = []
    for row in _rows(conn, statement("gauges/queues"), {"cap": CAP}):
        queue, ready, retry, later, later_retry, *more = row
        parked, parked_retry, running, oldest, longest = more
        found += [
            Reading("jobs", (queue, "pending"), ready + later + parked),
            Reading("jobs", (queue, "retryable"), retry + later_retry + parked_retry),
            Reading("jobs", (queue, "running"), running),
            Reading("queue_ready_jobs", (queue,), ready + retry),
            Reading("queue_oldest_ready_age_seconds", (queue,), max(0.0, oldest or 0.0)),
            Reading("queue_oldest_running_age_seconds", (queue,), max(0.0, longest or 0.0)),
        ]
    return found


class Looks:
    """What looks for waiting jobs read, on average since the reading before."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def read(self, conn: Connection) -> list[Reading]:
        """The average; none before the second reading, and none when nothing was looked for."""
        [(looks, entries)] = _rows(conn, statement("gauges/looks"), {})
        before, self._before = self._before, (looks, entries)
        if before is None or looks <= before[0]:  # statistics may have been reset
            return []
        each = (entries - before[1]) / (looks - before[0])
        return [Reading("index_entries_per_claim", (), max(0.0, each))]


def _ended(conn: Connection) -> list[Reading]:
    rows = _rows(conn, statement("gauges/ended"), {"cap": CAP_ENDED})
    return [Reading("jobs", (queue, state), count) for queue, state, count in rows]


def _outbox(conn: Connection) -> list[Reading]:
    [(pending, oldest, poisoned)] = _rows(conn, statement("gauges/outbox"), {"cap": CAP})
    return [
        Reading("outbox_pending_events", (), pending),
        Reading("outbox_oldest_pending_age_seconds", (), max(0.0, oldest or 0.0)),
        Reading("outbox_poisoned_events", (), poisoned),
    ]


def _leases(conn: Connection) -> list[Reading]:
    [(jobs, expired, endpoints)] = _rows(conn, statement("gauges/leases"), {"lease": LEASE})
    return [
        Reading("leases_held", ("job",), jobs),
        Reading("leases_held", ("endpoint",), endpoints),
        Reading("leases_expired", ("job",), expired),
    ]


def _webhooks(conn: Connection) -> list[Reading]:
    [(known, failing, disabled, longest)] = _rows(conn, statement("gauges/endpoints"), {"cap": CAP})
    return [
        Reading("webhook_endpoints", ("active",), max(0.0, known - failing - disabled)),
        Reading("webhook_endpoints", ("failing",), failing),
        Reading("webhook_endpoints", ("disabled",), disabled),
        Reading("webhook_longest_failing_seconds", (), max(0.0, longest or 0.0)),
    ]


def _processes(conn: Connection) -> list[Reading]:
    ages, counts = dict[str, float](), dict[tuple[str, str], int]()
    for role, slot, status, age in _rows(conn, statement("gauges/processes"), {}):
        counts[role, status] = counts.get((role, status), 0) + 1
        if status != "stopped":
            ages[_word(slot)] = max(age, ages.get(_word(slot), 0.0))  # of several hosts
    found = [Reading("process_beat_age_seconds", (slot,), age) for slot, age in ages.items()]
    return found + [Reading("processes", key, count) for key, count in counts.items()]


def _server(conn: Connection) -> list[Reading]:
    [(budget, transaction, xmin, held, queue)] = _rows(conn, statement("gauges/server"), {})
    sessions = _rows(conn, statement("gauges/connections"), {})
    return [
        Reading("db_connection_budget", (), budget),
        Reading("db_connections_needed", (), needed_by_all(conn)),
        Reading("db_oldest_transaction_seconds", (), max(0.0, transaction)),
        Reading("db_xmin_age_seconds", (), max(0.0, xmin)),
        Reading("db_xmin_age_transactions", (), held),
        Reading("notify_queue_usage", (), queue),
        *(Reading("db_connections", (role, state), count) for role, state, count in sessions),
    ]


def _drains(conn: Connection) -> list[Reading]:
    found = []
    for slot, finished, phases in _rows(conn, statement("gauges/drains"), {}):
        found.append(Reading("drain_last_timestamp_seconds", (_word(slot),), finished))
        found += [
            Reading("drain_last_phase_seconds", (_word(slot), phase), float(seconds))
            for phase, seconds in phases.items()
            if _WORD.fullmatch(phase) and isinstance(seconds, int | float)
        ]
    return found


def _paused(conn: Connection) -> list[Reading]:
    found = controls.paused(conn)
    return [
        *(Reading("paused", (one.what, one.name), 1) for one in found),
        *(Reading("quarantined", (one.name,), 1) for one in found if one.quarantine is not None),
    ]


def _periodic(conn: Connection) -> list[Reading]:
    rows = _rows(conn, statement("gauges/periodic"), {})
    return [
        Reading("periodic_last_success_timestamp_seconds", (name,), float(at)) for name, at in rows
    ]


def _strangers(conn: Connection, known: Sequence[str]) -> list[Reading]:
    params = {"cap": CAP, "known": list(known)}
    [(count,)] = _rows(conn, statement("gauges/strangers"), params)
    return [Reading("jobs_of_unknown_kinds", (), count)]


def _rows(conn: Connection, text: Any, params: Mapping[str, Any]) -> Sequence[Any]:
    with translated():
        return conn.execute(text, params).fetchall()


def _word(text: str) -> str:
    """A name from a row as a label; anything that is not one of ours becomes one series."""
    return text if _WORD.fullmatch(text) else "other"
