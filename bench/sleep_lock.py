"""What waking costs 16 writers that enqueue: with the consumer awake, asleep, and without a wake.

pgbench drives the SQL function that every language calls, one commit a job, durable. They take
turns: a plain insert of one row; the function with its wake switched off; with a busy consumer
(writers stay silent); with a sleeping one that nobody wakes (every writer notifies); and with a
NOTIFY in every transaction. Judged is the busy consumer against the same function without a wake.

Then what one long transaction of a silent writer does to everybody else's pickup: from the call
that enqueues and commits until the consumer hears of it, with such a writer open and without.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.support.application import QUEUE
from bench.support.contestant import NOOP
from bench.support.figures import interleaved, median
from bench.support.ours import APP
from bench.support.report import Result, finish
from bench.support.stack import database
from shared.app import load_app
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.wakes import Wakes, queue_channel
from weirkeeper.server import binaries
from weirkeeper.server.account import Account

WRITERS = 16
TARGET = 0.95  # of the commits that the same function makes without a wake
LONG_TARGET = 1.5  # times the pickup without a long writer
PATIENCE = 5.0  # seconds until a job that nobody hears of is an error
ENQUEUE = f"select weirkeeper.enqueue('{NOOP}')"
PLAIN = (
    "insert into weirkeeper.job (kind, queue, max_attempts, timeout_ms, awaited)"
    f" values ('{NOOP}', '{QUEUE}', 1, 1000, false)"
)
OFF = "-c weirkeeper.wake=off"
EMPTY = "truncate weirkeeper.job, weirkeeper.ready"


class Consumer:
    """A queue process's side of the sleep lock; hears and does nothing."""

    def __init__(self, url: str, number: int) -> None:
        self.wakes = Wakes(url, "bench", number, queue_channel(number))
        self.wakes.open()
        self._heard_at = 0.0
        self._heard = threading.Event()
        self._stop = threading.Event()

    @contextmanager
    def sleeps(self) -> Iterator[bool]:
        """Asleep, or dozing beside a writer that is still open (False), until the block ends."""
        asleep = self.wakes.fall_asleep()
        try:
            with self.hears():
                yield asleep
        finally:
            self.wakes.wake_up()

    @contextmanager
    def hears(self) -> Iterator[None]:
        """Takes what it is told: the server gives up a session that leaves its notices lying."""
        self._stop.clear()
        thread = threading.Thread(target=self._listen)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _listen(self) -> None:
        while not self._stop.is_set():
            select.select([self.wakes], [], [], 0.05)
            if self.wakes.drain():
                self._heard_at = time.perf_counter()
                self._heard.set()

    def pickup(self, writer: Connection) -> float:
        """Milliseconds until a job that is enqueued, and committed, is heard of."""
        self._heard.clear()
        began = time.perf_counter()
        writer.execute(ENQUEUE)
        if not self._heard.wait(PATIENCE):
            raise AssertionError("a job that nobody heard of")
        return (self._heard_at - began) * 1000

    def close(self) -> None:
        """End its session."""
        self.wakes.close()


class Writers:
    """Sixteen of them, driven by pgbench.

    Args:
        url: of the database.
        home: for scripts.
        number: of the queue.
        seconds: of one measurement.
    """

    def __init__(self, url: str, home: Path, number: int, seconds: int) -> None:
        self.url = url
        self.consumer = Consumer(url, number)
        self._home = home
        self._seconds = seconds
        self._channel = queue_channel(number)
        self._conn = connect(url, "bench", Use.MIGRATE)
        self._pgbench = str(binaries.find("", Account.choose("nobody")) / "pgbench")

    def plain(self) -> float:
        """A row in one table."""
        return self._commits(PLAIN)

    def off(self) -> float:
        """The function, without a wake."""
        return self._commits(ENQUEUE, OFF)

    def awake(self) -> float:
        """The consumer has more to do: nobody notifies."""
        return self._commits(ENQUEUE)

    def asleep(self) -> float:
        """The consumer sleeps through it all: everybody notifies."""
        with self.consumer.sleeps() as asleep:
            assert asleep
            return self._commits(ENQUEUE)

    def always(self) -> float:
        """What there would be without a sleep lock."""
        with self.consumer.hears():
            return self._commits(f"{ENQUEUE}, pg_notify('{self._channel}', '')", OFF)

    def pickups(self, jobs: int, *, long_writer: bool) -> float:
        """Milliseconds until the consumer hears of a job, the median of some."""
        with connect(self.url, "bench long") as long, connect(self.url, "bench writer") as writer:
            if long_writer:
                long.execute("set idle_in_transaction_session_timeout = 0")
                long.execute("begin")
                long.execute(ENQUEUE)  # silent: the consumer is awake
            with self.consumer.sleeps() as asleep:
                assert asleep != long_writer
                taken = [self.consumer.pickup(writer) for _ in range(jobs)]
        return median(taken)

    def _commits(self, text: str, options: str = "") -> float:
        self._conn.execute(EMPTY)
        self._conn.execute("checkpoint")
        script = self._home / "writer.sql"
        script.write_text(f"{text};\n", "utf-8")
        command = [self._pgbench, "-n", "-M", "prepared", "-c", str(WRITERS), "-j", "2"]
        ran = subprocess.run(
            [*command, "-T", str(self._seconds), "-f", str(script), self.url],
            env={**os.environ, "PGOPTIONS": options},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        found = re.search(r"tps = ([\d.]+)", ran.stdout)
        assert found is not None, ran.stdout
        return float(found[1])

    def close(self) -> None:
        """End its sessions."""
        self.consumer.close()
        self._conn.close()


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when a target was missed."""
    parser = argparse.ArgumentParser("script/bench sleep_lock", description=__doc__)
    parser.add_argument("--seconds", type=int, default=4, help="of one measurement (4)")
    parser.add_argument("--pickups", type=int, default=40, help="of one measurement (40)")
    parser.add_argument("--rounds", type=int, default=9, help="of each contestant (9)")
    args = parser.parse_args(argv)
    with database() as url, tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        writers = Writers(url, Path(folder), _number(url), args.seconds)
        writers.awake()  # the first one fills caches
        commits = interleaved(
            {
                "plain insert": writers.plain,
                "enqueue, wake off": writers.off,
                "enqueue, consumer awake": writers.awake,
                "enqueue, consumer asleep": writers.asleep,
                "enqueue, NOTIFY always": writers.always,
            },
            args.rounds,
        )
        pickups = interleaved(
            {
                "pickup, ms": lambda: writers.pickups(args.pickups, long_writer=False),
                "pickup, a long writer open, ms": lambda: writers.pickups(
                    args.pickups, long_writer=True
                ),
            },
            args.rounds,
        )
        writers.close()
    taken = {**commits, **pickups}
    pairs = zip(commits["enqueue, consumer awake"], commits["enqueue, wake off"], strict=True)
    short, long = pickups.values()
    slower = Result(
        "sleep_lock.long_writer",
        ours=median([b / a for a, b in zip(short, long, strict=True)]),
        target=LONG_TARGET,
        better="lower",
    )
    return finish(
        (f"commits a second, {WRITERS} writers", "rounds", "lowest", "median", "highest"),
        [(name, len(v), min(v), median(v), max(v)) for name, v in taken.items()],
        Result(
            "sleep_lock",
            ours=median([awake / off for awake, off in pairs]),
            target=TARGET,
            better="higher",
            also=(slower,),
        ),
    )


def _number(url: str) -> int:
    """Declare the application; the number of its queue."""
    with connect(url, "bench", Use.MIGRATE) as conn:
        declare(conn, load_app(APP))
        row = conn.execute("select no from weirkeeper.queue where name = %s", (QUEUE,)).fetchone()
    assert row is not None
    return int(str(row[0]))
