"""Which processes should run, which do, and in what state: what `weirkeeper status` tells.

Expected: one process for each queue, a relay, a listener, a metrics program, each under its usual
slot. The queues are those of the server that runs in this home, so that every shell judges the same
whatever its WEIRKEEPER_APP; without such a server, those of WEIRKEEPER_APP. Found: the newest life
of each slot in the process table. On this host a process that is gone is known at once; elsewhere
when its beat has been missing for three beats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from shared.app import load_app
from shared.config.home import published_database_url, published_queues
from shared.config.settings import NO_SERVER, Settings
from shared.errors import WeirkeeperError
from shared.postgres.driver.connect import Use, connect
from shared.postgres.driver.limits import usable_connections
from shared.postgres.processes.registry import BEAT, needed_by_all, processes
from shared.postgres.queues import controls
from shared.services.process import ProcessIdentity, is_alive

FRESH = 3 * BEAT  # seconds since the last beat
SINGLE = ("relay", "listener", "metrics")


@dataclass(frozen=True, slots=True)
class Process:
    """One slot. `phase`: starting, ready, draining, stopped; gone: no beat; missing: never ran."""

    role: str
    slot: str
    phase: str
    expected: bool
    pid: int | None = None
    host: str | None = None
    beat_age: float | None = None
    address: str | None = None
    children: int | None = None
    version: str | None = None
    queue: str | None = None
    generation: str | None = None
    queues: tuple[tuple[str, int], ...] = ()  # (name, children) of each, when it serves several

    @property
    def ready(self) -> bool:
        """Whether it works."""
        return self.phase == "ready"

    @property
    def served(self) -> dict[str, int]:
        """Children by queue."""
        return dict(self.queues) or ({self.queue: self.children or 0} if self.queue else {})


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one queue can do at once. `children`: most jobs, summed over its ready processes."""

    queue: str
    processes: int
    children: int


@dataclass(frozen=True, slots=True)
class Connections:
    """`needed`: by all living processes, of every host and release; `usable`: of the server."""

    needed: int
    usable: int


@dataclass(frozen=True, slots=True)
class Report:
    """How a deployment stands.

    Attributes:
        processes: in the order of the walk.
        problem: why nothing could be read, or "".
        paused: "queue webhook", "kind mail.send" …: what starts no jobs by hand.
        connections: the budget as it stands, or None.
    """

    processes: Sequence[Process] = ()
    problem: str = ""
    paused: Sequence[str] = ()
    connections: Connections | None = None

    @property
    def ready(self) -> bool:
        """Whether every expected process is ready."""
        return not self.problem and all(p.ready for p in self.processes if p.expected)

    @property
    def capacity(self) -> list[Capacity]:
        """Of each queue that has a ready process."""
        served = [process.served for process in self.processes if process.ready]
        return [
            Capacity(name, len(those), sum(those))
            for name in dict.fromkeys(name for queues in served for name in queues)
            for those in [[queues[name] for queues in served if name in queues]]
        ]

    def told(self) -> str:
        """One sentence for people."""
        if self.problem:
            return self.problem
        late = [f"{p.slot} ({p.phase})" for p in self.processes if p.expected and not p.ready]
        expected = sum(p.expected for p in self.processes)
        more = ", ".join(f"{p.slot} ({p.phase})" for p in self.processes if not p.expected)
        beside = f"; beside them: {more}" if more else ""
        if self.paused:
            beside += f"; paused: {', '.join(self.paused)}"
        if not late:
            return f"all {expected} processes are ready{beside}"
        ready = f"{expected - len(late)} of {expected} processes are ready"
        return f"{ready}; not: {', '.join(late)}{beside}"

    def plain(self) -> dict[str, Any]:
        """For programs."""
        rows = [
            {**asdict(p), "queues": dict(p.queues) or None, "ready": p.ready}
            for p in self.processes
        ]
        return {
            "ready": self.ready,
            "told": self.told(),
            "processes": rows,
            "paused": [*self.paused],
            "queues": [asdict(capacity) for capacity in self.capacity],
            "connections": None if self.connections is None else asdict(self.connections),
        }


def look() -> Report:
    """Read settings and process table anew; a database that is away is a report, not an error.

    Raises:
        ConfigurationError: settings that cannot work.
    """
    settings = Settings.load()
    if not settings.direct_url:
        return Report(problem=NO_SERVER.format(home=settings.home))
    queues = _queues(settings)
    try:
        with connect(settings.direct_url, "status", Use.READ) as conn:
            rows = processes(conn)
            paused = [_told(one) for one in controls.paused(conn)]
            connections = Connections(needed_by_all(conn), usable_connections(conn))
    except WeirkeeperError as error:
        return Report(problem=f"the database does not answer: {str(error).splitlines()[0]}")
    found = report(expected_slots(queues), rows)
    return replace(found, paused=paused, connections=connections)


def _told(one: controls.Pause) -> str:
    name = f"{one.what} {one.name}"
    return name if one.quarantine is None else f"{name} (quarantined)"


def _queues(settings: Settings) -> list[str]:
    """Of the server that runs here on this database, else of the application that we know."""
    if settings.database_url == published_database_url(settings.home):
        published = published_queues(settings.home)
        if published:
            return published
    return list(load_app(settings.app).all_queues)


def expected_slots(queues: Iterable[str]) -> list[tuple[str, str]]:
    """(role, slot) of each process of a deployment, in the order of the walk."""
    rows = [("queue", name.replace("_", "-")) for name in queues]
    return [(SINGLE[0], SINGLE[0]), *rows, *((role, role) for role in SINGLE[1:])]


def report(expected: Sequence[tuple[str, str]], rows: Iterable[Mapping[str, Any]]) -> Report:
    """Judge process rows.

    Args:
        expected: (role, slot) of each that should run; one process may serve several queues.
        rows: of the process table, newest life of a slot first. Hosts may have the same slots.
    """
    newest: dict[tuple[str, str, str], Process] = {}
    for row in rows:
        newest.setdefault((row["role"], row["slot"], row["host"]), _judged(row))
    found = [*newest.values()]
    wanted = [_chosen(key, [p for p in found if _is(p, *key)]) for key in expected]
    beside = [p for p in found if p not in wanted and p.phase not in ("gone", "stopped")]
    return Report([*(replace(p, expected=True) for p in dict.fromkeys(wanted)), *beside])


def _is(process: Process, role: str, slot: str) -> bool:
    """Whether it is what should run under this slot: by its own, or among the queues it serves."""
    names = {name.replace("_", "-") for name, _ in process.queues}
    return process.role == role and (process.slot == slot or slot in names)


def _chosen(key: tuple[str, str], hosts: Sequence[Process]) -> Process:
    """Of the processes with one slot, one a host: the one that makes the slot ready, or would."""
    ready = [p for p in hosts if p.ready]
    return (ready or [*hosts, Process(*key, phase="missing", expected=True)])[0]


def _judged(row: Mapping[str, Any]) -> Process:
    phase = row["phase"]
    if phase != "stopped" and (row["beat_age"] > FRESH or not is_alive(_identity(row))):
        phase = "gone"
    return Process(
        role=row["role"],
        slot=row["slot"],
        phase=phase,
        expected=False,
        pid=row["pid"],
        host=row["host"],
        beat_age=round(row["beat_age"], 3),
        address=row["address"],
        children=row["children"],
        version=row["version"],
        queue=row["queue"],
        queues=tuple((row.get("queues") or {}).items()),
        generation=row["generation"],
    )


def _identity(row: Mapping[str, Any]) -> ProcessIdentity:
    fields = ("host", "boot_id", "pid_namespace", "pid", "pid_started")
    return ProcessIdentity(**{name: row[name] for name in fields})
