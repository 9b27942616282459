"""CPU time of processes by what they are for: a figure that a busy machine hardly changes.

    before = sample(database, {"queue process": [pid], "receiver": [receiver]})
    …
    spent = since(before, sample(…))     seconds, by name

Server processes are found by the names of their sessions, children by the tree of the process that
started them. What a process that ended in between has used is not seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from shared.postgres.driver.connect import Connection
from workers.pool.tree import descendants

SESSIONS = "select pid, application_name from pg_stat_activity where datname = current_database()"
Sample = dict[tuple[str, int], float]


def sample(conn: Connection, programs: Mapping[str, int]) -> Sample:
    """CPU seconds so far, by name and process.

    Args:
        conn: finds the server processes of its database's sessions; its own is left out.
        programs: processes by name; what is below one of them counts as "NAME: children".
    """
    found: Sample = {}
    for name, pid in programs.items():
        found[name, pid] = cpu(pid)
        for below in descendants(pid):
            found[f"{name}: children", below] = cpu(below)
    for server, session in conn.execute(SESSIONS).fetchall():
        if server != conn.info.backend_pid:
            _, _, use = str(session).rpartition(" ")
            found[f"Postgres: {use}", int(str(server))] = cpu(int(str(server)))
    return found


def since(before: Sample, after: Sample) -> dict[str, float]:
    """CPU seconds between two samples, by name, the largest first."""
    spent: dict[str, float] = defaultdict(float)
    for (name, pid), seconds in after.items():
        spent[name] += max(0.0, seconds - before.get((name, pid), 0.0))
    return dict(sorted(spent.items(), key=lambda each: -each[1]))


def cpu(pid: int) -> float:
    """CPU seconds of a process's living threads; 0 when it is gone. Exact: no clock ticks."""
    total = 0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            total += int((thread / "schedstat").read_text("ascii").split()[0])
    except OSError:
        return 0.0
    return total / 1e9
