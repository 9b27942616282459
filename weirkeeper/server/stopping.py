"""What a person reads while everything stops: which jobs it waits for, and how long at most.

Stands beside serve, which asks it to look while supervisord ends. A database that does not answer
makes it silent, never late: it only tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing

from shared.clock import SYSTEM
from shared.config.settings import Settings
from shared.errors import WeirkeeperError
from shared.postgres.driver.connect import Use, connect
from shared.postgres.processes.registry import held
from shared.services.process import identity
from shared.services.stop import StopSignal
from weirkeeper.server.leftovers import supervised

FIRST = 1.0  # seconds until the first line: most stops are over by then
REMIND = 5.0  # seconds between lines
MOST = 100  # jobs that are counted
NAMED = 3  # jobs that are named


class Stopping:
    """Tells how one stop goes.

    Args:
        url: of the database.
        settings: home and drain.
        stop: counts further requests.
        tell: gets each line.
    """

    def __init__(
        self, url: str, settings: Settings, stop: StopSignal, tell: Callable[[str], None]
    ) -> None:
        self._url = url
        self._home = settings.home
        self._bound = settings.drain_seconds + settings.grace_seconds
        self._stop = stop
        self._tell = tell
        self._heard = stop.requests
        self._began = SYSTEM.monotonic()
        self._next = FIRST

    def look(self) -> None:
        """Tell what there is to tell now, if anything."""
        passed = SYSTEM.monotonic() - self._began
        if self._stop.requests > self._heard:
            self._heard = self._stop.requests
            self._tell(f"already stopping; {told(self._jobs(), self._bound - passed)}")
        elif passed >= self._next:
            self._next = passed + REMIND
            if jobs := self._jobs():
                self._tell(told(jobs, self._bound - passed))

    def _jobs(self) -> Sequence[tuple[str, str]]:
        try:
            with closing(connect(self._url, "server", Use.READ)) as conn:
                return held(conn, identity(), list(supervised(self._home)), MOST)
        except WeirkeeperError:
            return ()


def told(jobs: Sequence[tuple[str, str]], left: float) -> str:
    """One line about the jobs that a stop waits for.

    Args:
        jobs: (id, kind), at most MOST.
        left: seconds until the last of them is stopped.
    """
    if not jobs:
        return "no job runs any more; the processes end one group after the other"
    several = len(jobs) > 1
    count = f"{MOST} or more" if len(jobs) >= MOST else str(len(jobs))
    names = ", ".join(f"{kind} {job_id}" for job_id, kind in jobs[:NAMED])
    more = ", …" if len(jobs) > NAMED else ""
    seconds = max(0, math.ceil(left))
    subject = f"{count} jobs still run" if several else f"{count} job still runs"
    return f"{subject} ({names}{more}), at most {seconds} s more"
