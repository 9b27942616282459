"""What recording an event costs its caller: commits a second, against a plain insert of the row.

pgbench drives 16 writers (or as many as `--writers` says) with synchronous commits on a durable
server. The plain table has the same columns and keys as the log and nothing else. Beside the two
that are judged: what recording costs while a consumer sleeps, so that every writer notifies
(Postgres lets one commit with a notice through at a time, in all databases of the server), and
with the switch that leaves the notice out.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import psycopg

from bench.support.figures import interleaved, median
from bench.support.report import Result, finish
from bench.support.stack import database
from weirkeeper.server import binaries
from weirkeeper.server.account import Account

TARGET, GOAL = 0.7, 0.8  # of the plain insert's commits
WRITERS = 16
PLAIN = """
create table plain_event (
  id uuid primary key default gen_random_uuid(), seq bigint generated always as identity,
  owner_id text, type text not null, subject text not null, data jsonb not null,
  occurred_at timestamptz not null default clock_timestamp(), trace text)
"""
DATA = '{"note_id": "7", "op": "update"}'
VALUES = f"'me', 'corpus.note.changed', 'wiki://' || (:n)::text, '{DATA}'"
SCRIPTS = {
    "plain": f"insert into plain_event (owner_id, type, subject, data) values ({VALUES});",
    "record": (
        "select weirkeeper.record_event(owner_id => 'me', type => 'corpus.note.changed',"
        f" subject => 'wiki://' || (:n)::text, data => '{DATA}');"
    ),
}
JUDGED, RIVAL = "recorded", "a plain insert"
SILENT = "-c weirkeeper.wake=off"


class Writers:
    """Some of them, on one database."""

    def __init__(self, url: str, folder: Path, seconds: int, count: int) -> None:
        self._url = url
        self._count = count
        self._seconds = seconds
        self._folder = folder
        self._conn = psycopg.connect(url, autocommit=True)
        self._conn.execute(PLAIN)
        self._pgbench = str(binaries.find("", Account.choose("nobody")) / "pgbench")
        for name, text in SCRIPTS.items():
            (folder / name).write_text(f"\\set n random(1, 1000000)\n{text}\n")

    def commits(self, script: str, options: str = "", *, asleep: bool = False) -> float:
        """Commits a second; `asleep`: a consumer wants to be woken all the while."""
        tables = "weirkeeper.event, weirkeeper.event_pending, plain_event"
        self._conn.execute(f"truncate {tables}")
        self._conn.execute("checkpoint")
        with psycopg.connect(self._url, autocommit=True) as sleeper:
            if asleep:
                sleeper.execute("listen weirkeeper_relay")
                sleeper.execute(
                    "select pg_advisory_lock(1464160587, 0), pg_advisory_lock(1464160587, 1)"
                )
            return self._run(script, options)

    def _run(self, script: str, options: str) -> float:
        clients = ["-c", str(self._count), "-j", "2", "-T", str(self._seconds)]
        ran = subprocess.run(
            [self._pgbench, "-n", "-M", "prepared", *clients, "-f", str(self._folder / script),
             self._url],
            env={**os.environ, "PGOPTIONS": f"-c synchronous_commit=on {options}"},
            capture_output=True, text=True, check=True, timeout=600,
        )  # fmt: skip
        found = re.search(r"tps = ([\d.]+)", ran.stdout)
        assert found is not None, ran.stdout
        return float(found[1])

    def close(self) -> None:
        """End its session."""
        self._conn.close()


def main(argv: Sequence[str]) -> int:
    """Measure; return 0 when the target was met."""
    parser = argparse.ArgumentParser("script/bench record_cost", description=__doc__)
    parser.add_argument("--seconds", type=int, default=5, help="of each contestant a round (5)")
    parser.add_argument("--rounds", type=int, default=7, help="of each contestant (7)")
    parser.add_argument("--writers", type=int, default=WRITERS, help="at once (16)")
    args = parser.parse_args(argv)
    with database() as url, tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        writers = Writers(url, Path(folder), args.seconds, args.writers)
        contestants: dict[str, Callable[[], float]] = {
            RIVAL: partial(writers.commits, "plain"),
            JUDGED: partial(writers.commits, "record"),
            "recorded, a consumer sleeps": partial(writers.commits, "record", asleep=True),
            "the same, without the notice": partial(
                writers.commits, "record", SILENT, asleep=True
            ),
        }  # fmt: skip
        taken = interleaved(contestants, args.rounds)
        writers.close()
    plain = median(taken[RIVAL])
    rows = [
        (name, len(v), min(v), median(v), max(v), median(v) / plain) for name, v in taken.items()
    ]
    ours = median(taken[JUDGED])
    print(f"goal: {GOAL:.0%} of the plain insert; {'met' if ours / plain >= GOAL else 'missed'}")
    return finish(
        ("commits a second", "rounds", "lowest", "median", "highest", "of plain"),
        rows,
        Result("record_cost", ours=ours, rival=plain, target=TARGET, better="higher"),
    )
