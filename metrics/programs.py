"""What supervisord tells of this host's programs, read by a timer beside the database's numbers.

Before it: shared.services.supervision. After it: the server renders the snapshot. On a timer of its
own, because it must tell of FATAL programs also while the database is away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from shared.errors import WeirkeeperError
from shared.services.service import ticker
from shared.services.supervision import Program
from shared.stats import Reading

EVERY = 5.0  # seconds between reads
STOP = 1.0  # seconds that a stop waits for a read

log = logging.getLogger(__name__)


class Programs:
    """A service that keeps the newest state of every program; none where no supervisord runs.

    Args:
        ask: gives the programs.
        on_death: called when the loop dies.
    """

    def __init__(
        self, ask: Callable[[], Sequence[Program]], on_death: Callable[[BaseException], None]
    ) -> None:
        self._ask = ask
        # Replaced whole, never changed in place: the server reads it from another thread.
        self._snapshot: tuple[Reading, ...] = ()
        self._ticker = ticker("programs", EVERY, self.read, on_death)

    def start(self) -> None:
        """Begin to read, at once and then every 5 s."""
        self._ticker.start()

    def started(self) -> bool:
        """Whether the loop runs."""
        return self._ticker.started()

    def stop(self) -> None:
        """End the loop."""
        self._ticker.stop(STOP)

    def read(self) -> None:
        """Read once; numbers that can no longer be had are told no longer."""
        try:
            found = self._ask()
        except WeirkeeperError as error:
            log.debug("supervisord was not asked: %s", error)
            found = ()
        self._snapshot = tuple(
            Reading("supervisor_process_state", (p.name, p.state), 1) for p in found
        )

    def readings(self) -> list[Reading]:
        """The newest states."""
        return list(self._snapshot)
