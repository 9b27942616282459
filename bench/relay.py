"""Events a second of one relay, its loop against its own SQL under pgbench; and how soon a job is.

Both empty a line of their own, one subscriber each, 200 events a pass, durable commits.
The loop is the relay's turn as the program runs it: pass, announcement, counting. pgbench runs the
text of the same statement, prepared, in a session with the same settings; what it does faster is
what Python and the announcements cost.

How soon: a relay as a program, which sleeps; an event is recorded, and another session looks again
and again until its job is in line. The clock runs from the moment that the writer knew its commit.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from bench.support.figures import interleaved, median, quantile
from bench.support.report import Result, finish
from bench.support.stack import database, stack
from relay.relay_pass import RelayPass
from relay.tally import Tally
from shared.events.outbox import BATCH
from shared.postgres.driver.connect import Connection, connect
from shared.postgres.driver.statements import statement
from shared.postgres.events.relay import PostgresOutbox
from shared.telemetry.instruments import open_instruments
from tests.support.waiting import pause
from weirkeeper.server import binaries
from weirkeeper.server.account import Account

TARGET = 0.7
GOAL = 20_000  # events/s of one process
SOON = 10.0  # ms from commit to a job in line, p99
PAUSE = 0.05  # seconds in which the relay falls asleep again
RECORD = (
    "insert into weirkeeper.event (type, subject)"
    " select 'corpus.note.changed', 'wiki://' || i from generate_series(1, %s) i"
)
RECORD_ONE = "select weirkeeper.record_event('corpus.note.changed', subject => %s)"
IN_LINE = "select 1 from weirkeeper.event_fanout where event_id = %s"  # commits with the job
SHOWN = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
PATIENCE = 30.0  # seconds
VALUES = {
    "after": ":after",
    "upto": str(2**63 - 1),
    "size": str(BATCH),
    "retry": "null",
    "look": "false",
}


class Line:
    """A line of events, and the two that empty it."""

    def __init__(self, url: str, home: Path, events: int) -> None:
        self._url = url
        self._events = events
        self._conn: Connection = connect(url, "bench")
        self._instruments = open_instruments(home, "relay")
        self._relay = RelayPass(PostgresOutbox(connect(url, "relay")), Tally(self._instruments))
        self._script = home / "pass.sql"
        self._script.write_text(_script(), "utf-8")
        self._pgbench = str(binaries.find("", Account.choose("nobody")) / "pgbench")

    def loop(self) -> float:
        """Events a second of the relay's own loop."""
        self._fill()
        started = time.perf_counter()
        for _ in range(self._events // BATCH):
            assert self._relay.turn().full
        return self._events / (time.perf_counter() - started)

    def bare(self) -> float:
        """Events a second of the same statement under pgbench."""
        self._fill()
        command = [self._pgbench, "-n", "-M", "prepared", "-D", "after=0", "-f", str(self._script)]
        passes = ["-t", str(self._events // BATCH), self._url]
        environment = {**os.environ, "PGOPTIONS": _options()}
        ran = subprocess.run(
            [*command, *passes],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        found = re.search(r"tps = ([\d.]+)", ran.stdout)
        assert found is not None, ran.stdout
        return float(found[1]) * BATCH

    def _fill(self) -> None:
        left = self._conn.execute("select count(*) from weirkeeper.event_pending").fetchone()
        assert left == (0,), "the round before left events behind"
        self._conn.execute(RECORD, [self._events])
        self._conn.execute("checkpoint")


def _script() -> str:
    text = "\n".join(
        line for line in statement("relay/fan_out").splitlines() if not line.startswith("--")
    )
    text = re.sub(r"^\s*--.*\n", "", text, flags=re.MULTILINE)
    for name, value in VALUES.items():
        text = text.replace(f"%({name})s", value)
    return f"{text}\n\\gset\n\\set after :last_claimed\n"


def _options() -> str:
    """The relay session's settings, as a client may send them at its start."""
    found = re.findall(r"set_config\('(\w+)', '(\w+)', false\)", statement("relay/session"))
    return " ".join(f"-c {name}={value}" for name, value in [*found, ("jit", "off")])


def main(argv: Sequence[str]) -> int:
    """Measure; return 0 when the target was met."""
    parser = argparse.ArgumentParser("script/bench relay", description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="a round (20000)")
    parser.add_argument("--rounds", type=int, default=7, help="of each contestant (7)")
    parser.add_argument("--singles", type=int, default=500, help="events one at a time (500)")
    args = parser.parse_args(argv)
    with database() as url, tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        line = Line(url, Path(folder), args.events)
        line.loop()
        taken = interleaved(
            {"the relay's loop": line.loop, "its SQL, pgbench": line.bare}, args.rounds
        )
    rows = [(name, len(v), min(v), median(v), max(v)) for name, v in taken.items()]
    ours, rival = (median(figures) for figures in taken.values())
    soon = pickups(args.singles)
    percentiles = ", ".join(f"{name} {quantile(soon, q):.2f}" for name, q in SHOWN)
    print(f"commit → job in line, ms, {len(soon)} on an idle system: {percentiles}")
    also = (
        Result("relay: events a second", ours=ours, target=GOAL, better="higher"),
        Result("relay: commit → job in line, ms", quantile(soon, 0.99), SOON, better="lower"),
    )
    return finish(
        ("events a second", "rounds", "lowest", "median", "highest"),
        rows,
        Result("relay", ours=ours, rival=rival, target=TARGET, better="higher", also=also),
    )


def pickups(events: int) -> list[float]:
    """Milliseconds from each commit to its job in line, while nothing else happens."""
    taken = []
    with stack([("relay",)]) as running, psycopg.connect(running.url, autocommit=True) as conn:
        for n in range(events):
            pause(PAUSE, "the relay falls asleep")
            event = conn.execute(RECORD_ONE, [f"wiki://{n}"]).fetchone()
            began = time.perf_counter()
            while not conn.execute(IN_LINE, event, prepare=True).fetchone():
                assert time.perf_counter() - began < PATIENCE, "the relay does nothing"
            taken.append((time.perf_counter() - began) * 1000)
    return taken
