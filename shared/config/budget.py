"""The connection budget: what this deployment can open, against what the server has to give.

Refused at boot on the static sum (mechanisms: a mistake shows at boot, not as queueing later):
processes × (children that may hold a connection + parents) + relay + listener + metrics + panel +
migrator must fit in half of the server's usable connections; the other half is the application's.
What all living processes need together, of every host and generation, is only told: to refuse
there would keep a deploy from starting the new generation before the old one has gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from shared.config.queues import Queue
from shared.errors import ConfigurationError

PARENT = 3  # claims and finishes, beat, LISTEN with the sleep lock
BEAT = 1  # of those: once a process, however many queues it has
RELAY = 3  # passes, beat, LISTEN with the sleep lock
LISTENER = 3  # LISTEN, reads, beat
METRICS = 2  # collector, beat
PANEL = 2  # a person's commands: one at the desk, one that waits
MIGRATOR = 1
SHARED = "beats shared by queues of one process"
SPARE = 10  # of the usable connections that all living processes together should leave


@dataclass(frozen=True, slots=True)
class Budget:
    """Connections by who opens them."""

    parts: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(n for _, n in self.parts)

    def spelled(self) -> str:
        """The sum, as a person reads it."""
        return " + ".join(f"{name} {n}" for name, n in self.parts) + f" = {self.total}"

    def check(self, usable: int) -> None:
        """Refuse a sum over half of what the server has.

        Args:
            usable: max_connections less those reserved for superusers.

        Raises:
            ConfigurationError: it does not fit; the sum is spelled out.
        """
        if self.total > usable // 2:
            raise ConfigurationError.of(
                "connection budget",
                f"at most half of the server's {usable} usable connections ({usable // 2})",
                self.spelled(),
                "set WEIRKEEPER_CHILDREN to fewer children, or raise max_connections",
            )


def parent(queues: int) -> int:
    """Connections of a queue process without its children, that has so many queues."""
    return BEAT + queues * (PARENT - BEAT)


def sessions(queue: Queue, sessionless: Collection[str] = ()) -> int:
    """Connections that the children of one process of a queue may hold: one each, or none."""
    return 0 if queue.name in sessionless else queue.children


def budget(
    queues: Iterable[Queue],
    processes: Mapping[str, int] | None = None,
    sessionless: Collection[str] = (),
) -> Budget:
    """Sum up a deployment.

    Args:
        queues: with their numbers of children.
        processes: how many of each queue, and of relay, listener and metrics; one where not told.
            Under SHARED, how many beats less there are because queues share a process.
        sessionless: names of queues whose children get no database.
    """
    counts = processes or {}
    parts = [
        _part(q.name, PARENT + n, counts, f" ({PARENT} + {n} children)" if n else "")
        for q, n in ((q, sessions(q, sessionless)) for q in queues)
    ]
    parts += [
        _part("relay", RELAY, counts),
        _part("listener", LISTENER, counts),
        _part("metrics", METRICS, counts),
        ("panel", PANEL),
        ("migrator", MIGRATOR),
    ]
    if counts.get(SHARED):
        parts.append((SHARED, -BEAT * counts[SHARED]))
    return Budget(tuple(parts))


def overdrawn(needed: int, usable: int) -> str:
    """What to say when all living processes together may need more than there is, or "".

    Args:
        needed: connections of all living processes, of every host and generation.
        usable: max_connections less those reserved for superusers.
    """
    if needed <= usable - SPARE:
        return ""
    return (
        f"all living processes may open {needed} connections of the server's {usable} usable ones; "
        f"fewer than {SPARE} are left for the application: stop an old release, or raise "
        "max_connections"
    )


def _part(name: str, each: int, counts: Mapping[str, int], what: str = "") -> tuple[str, int]:
    number = counts.get(name, 1)
    return (f"{name}{what}", each) if number == 1 else (f"{number} x {name}{what}", number * each)
