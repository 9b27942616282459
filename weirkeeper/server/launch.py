"""Becomes postgres: `python -P -m weirkeeper.server.launch BINARIES BASE USER SIGNAL PARENT`.

What supervisord (or a test) starts. Drops to the account, asks the kernel for a signal when the
parent dies, then execs, so that the process that is watched is the postmaster itself.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from shared.services.process import die_with_parent
from weirkeeper.server.account import Account
from weirkeeper.server.embedded import Cluster


def command(cluster: Cluster, on_parent_death: signal.Signals) -> list[str]:
    """The command line that runs a cluster in the foreground, but for its last argument, PARENT.

    PARENT is the pid of who starts it: the imports take long enough for that one to die.

    Args:
        cluster: already initialised and configured.
        on_parent_death: SIGTERM lets clients finish (smart), SIGINT ends them (fast),
            SIGQUIT does not even write a checkpoint (immediate; for throwaway clusters).
    """
    where = [str(cluster.binaries), str(cluster.base), cluster.account.name]
    return [sys.executable, "-P", "-m", "weirkeeper.server.launch", *where, on_parent_death.name]


def main(arguments: list[str]) -> None:
    """Drop, bind to the parent, exec."""
    binaries, base, user, on_parent_death, parent = arguments
    cluster = Cluster(Path(binaries), Path(base), Account.choose(user))
    os.chdir("/")
    cluster.account.become()
    die_with_parent(signal.Signals[on_parent_death], int(parent))
    program = str(cluster.binaries / "postgres")
    settings = f"config_file={cluster.configuration}"
    environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
    os.execve(program, [program, "-D", str(cluster.data), "-c", settings], environment)


if __name__ == "__main__":
    main(sys.argv[1:])
