"""One throwaway Postgres for a whole test session, on the embedded server's own code.

It dies with the session, even after kill -9 of pytest: the kernel sends it SIGQUIT.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.folders import quick_folder
from tests.support.waiting import until
from weirkeeper.server import binaries, embedded, launch, postmaster
from weirkeeper.server.account import Account
from workers.pool.tree import descendants

PREFIX = "weirkeeper-test-"
FAST = {"fsync": "off", "full_page_writes": "off", "max_connections": "200"}


class ThrowawayCluster:
    """Started when made; `stop` ends it and removes its folder.

    Attributes:
        log: what the server writes, of all its starts.

    Args:
        settings: of the server, over the embedded server's defaults.
        pgbin: folder of initdb and postgres, or "" for the wheel's.
        folder: where its data lies; None = where that is quickest.
    """

    def __init__(
        self, settings: Mapping[str, str] = FAST, pgbin: str = "", folder: Path | None = None
    ) -> None:
        folder = folder or quick_folder()
        _remove_leftovers(folder)
        self._base = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=folder))
        self._base.chmod(0o711)
        account = Account.choose("nobody")
        cluster = embedded.Cluster(binaries.find(pgbin, account), self._base, account)
        password = embedded.kept_password(self._base / "password")
        embedded.initialise(cluster, password, sync=False)
        port = free_port()
        embedded.configure(cluster, port, settings)
        self.log = self._base / "log"
        self._log = self.log.open("wb")
        self._command = [*launch.command(cluster, signal.SIGQUIT), str(os.getpid())]
        self.url = cluster.url(port, password)
        self.data = cluster.data
        self.start()

    def start(self) -> None:
        """Start it, or start it again after `stop_fast`; it accepts connections then."""
        self.process = subprocess.Popen(
            self._command,
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is pytest's affair; teardown still needs a server
        )
        until(self._ready, 30, "the throwaway Postgres accepts connections")

    def _ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        found = postmaster.find(self.data)
        return found is not None and found.ready

    def stop_fast(self) -> None:
        """As `pg_ctl stop -m fast`: sessions are ended, what was committed is kept."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)

    def stop(self) -> None:
        """End it at once; nothing in it is kept."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(timeout=20)
        self._log.close()
        shutil.rmtree(self._base, ignore_errors=True)


@contextmanager
def frozen(cluster: ThrowawayCluster) -> Iterator[None]:
    """Every process of the server stands still; the kernel keeps its connections."""
    pids = [cluster.process.pid, *descendants(cluster.process.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGCONT)


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _remove_leftovers(folder: Path) -> None:
    """Folders of sessions that were killed: their name says whose they were."""
    for left in folder.glob(f"{PREFIX}*-*"):
        owner = left.name.removeprefix(PREFIX).split("-")[0]
        if not Path(f"/proc/{owner}").exists():
            shutil.rmtree(left, ignore_errors=True)
