"""What the whole stack costs at rest: memory and processor of everything but Postgres.

Started by a plain supervisord as it ships: 5 queue processes with their fork servers and 18
children, relay, listener and metrics, with supervisord itself. After a minute of rest, shared pages
are counted once (PSS), and the processor's time is that of the next half minute. Then one queue
process is alone on another server, and every statement that it says but the claims of its poll is
counted, its beats included.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psycopg

from bench.support.report import Result, finish
from bench.support.stack import DURABLE, database
from tests.support.cluster import ThrowawayCluster
from tests.support.databases import Databases
from tests.support.processes import ROOT, Programs
from tests.support.said import LOGGED, position, said
from tests.support.waiting import pause, until

MOST_MIB, GOAL_MIB, MOST_CPU, MOST_TRANSACTIONS = 480.0, 400.0, 3.0, 30.0
MOST_STATEMENTS = 2.0  # a second, of one queue process, beyond its poll
READY = "select count(*) from weirkeeper.process where phase = 'ready'"
TRANSACTIONS = (
    "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
)
PROGRAMS = 8
CHILDREN = 18


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when a target was missed."""
    parser = argparse.ArgumentParser("script/bench rest", description=__doc__)
    parser.add_argument("--rest", type=float, default=60, help="seconds of rest before (60)")
    parser.add_argument("--measure", type=float, default=30, help="seconds that are measured (30)")
    args = parser.parse_args(argv)
    with database() as url, tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        programs = Programs(Path(folder), url)
        try:
            _start(programs, url)
            pause(args.rest, "the stack comes to rest")
            cpu, transactions = _spent(programs, url, args.measure)
            memory = _memory(programs)
        finally:
            programs.close()
    statements = _beyond_its_poll(args.measure)
    total = sum(mib for mibs in memory.values() for mib in mibs)
    rows = [(what, len(mibs), sum(mibs), max(mibs)) for what, mibs in sorted(memory.items())]
    rows.append(("everything", sum(map(len, memory.values())), total, total))
    rows.append(("processor, % of one core", 1, cpu, cpu))
    rows.append(("transactions a second", 1, transactions, transactions))
    rows.append(("statements a second beyond the poll", 1, statements, statements))
    also = (
        Result("rest: processor, % of one core", cpu, MOST_CPU, "lower"),
        Result("rest: transactions a second", transactions, MOST_TRANSACTIONS, "lower"),
        Result("rest: statements beyond the poll", statements, MOST_STATEMENTS, "lower"),
    )
    print(f"goal {GOAL_MIB:g} MiB")
    result = Result("rest", total, MOST_MIB, "lower", also=also)
    return finish(("what", "processes", "PSS MiB", "largest"), rows, result)


def _start(programs: Programs, url: str) -> None:
    for name in ("run", "log"):
        (programs.home / name).mkdir(mode=0o700)
    command = [sys.executable, "-P", "-m", "supervisor.supervisord"]
    programs.execute(
        [*command, "-c", str(ROOT / "supervisord.conf")], {"WEIRKEEPER_PYTHON": sys.executable}
    )
    with psycopg.connect(url, autocommit=True) as conn:
        until(lambda: conn.execute(READY).fetchone() == (PROGRAMS,), 120, "all are ready")


def _beyond_its_poll(seconds: float) -> float:
    """Statements a second of one idle queue process, without the claims of its poll."""
    cluster = ThrowawayCluster({**DURABLE, **LOGGED}, folder=Path(tempfile.gettempdir()))
    try:
        with tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
            url = Databases(cluster.url).create()
            programs = Programs(Path(folder), url)
            try:
                programs.start("workers", "index")
                with psycopg.connect(url, autocommit=True) as conn:
                    until(lambda: conn.execute(READY).fetchone() == (1,), 60, "it is ready")
                pause(3, "it comes to rest")
                since = position(cluster.log)
                pause(seconds, "what one queue process says is counted")
                return said(cluster.log, "index", since).others / seconds
            finally:
                programs.close()
    finally:
        cluster.stop()


def _memory(programs: Programs) -> dict[str, list[float]]:
    """PSS in MiB of every process, by what it is."""
    found: dict[str, list[float]] = {}
    for pid in programs.living():
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        [kib] = [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
        found.setdefault(_what(pid), []).append(kib / 1024)
    assert len(found.get("child", ())) == CHILDREN, {k: len(v) for k, v in found.items()}
    return found


def _what(pid: int) -> str:
    """What a process is: its program's name, or whose child it is."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    command = " ".join(words)
    if "supervisor.supervisord" in command:
        return "supervisord"
    for name in ("relay", "listener", "metrics", "workers"):
        if name in words:
            return "queue process" if name == "workers" else name
    return "fork server" if _children(pid) else "child"


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _spent(programs: Programs, url: str, seconds: float) -> tuple[float, float]:
    """Processor in % of one core, and transactions a second, over some time."""
    with psycopg.connect(url, autocommit=True) as conn:
        ticks, done = _ticks(programs), _transactions(conn)
        pause(seconds, "what a stack at rest does is measured")
        spent = (_ticks(programs) - ticks) / os.sysconf("SC_CLK_TCK")
        return 100 * spent / seconds, (_transactions(conn) - done) / seconds


def _ticks(programs: Programs) -> int:
    total = 0
    for pid in programs.living():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total


def _transactions(conn: psycopg.Connection) -> int:
    row = conn.execute(TRANSACTIONS).fetchone()
    return int(row[0]) if row else 0
