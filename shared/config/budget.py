"""The connection budget: what this deployment can open, against what the server has to give.

Refused at boot on the static sum (mechanisms: a mistake shows at boot, not as queueing later):
children that may hold a connection + parents + relay + listener + metrics + migrator must fit in
half of the server's usable connections; the other half is the application's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shared.config.queues import Queue
from shared.errors import ConfigurationError

PARENT = 3  # claims and finishes, beat, LISTEN with the sleep lock
RELAY = 3  # passes, beat, LISTEN with the sleep lock
LISTENER = 3  # LISTEN, reads, beat
METRICS = 2  # collector, beat
MIGRATOR = 1


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


def budget(queues: Iterable[Queue]) -> Budget:
    """Sum up one process per queue, and one each of the others."""
    parts = [(f"{q.name} ({PARENT} + {q.children} children)", PARENT + q.children) for q in queues]
    parts += [
        ("relay", RELAY),
        ("listener", LISTENER),
        ("metrics", METRICS),
        ("migrator", MIGRATOR),
    ]
    return Budget(tuple(parts))
