"""SIGKILL at each step of a delivery: nothing lost, the same id each time, never two in flight.

Six steps are failpoints in the handlers, at which every child kills itself at its second job; the
seventh is the receiver, which kills the child whose request it holds; the eighth kills the queue
process then. Events go to an endpoint each, so that as many deliveries as kills are at stake. A
lease that a killed child left is made to run out at once: what is tried is not the wait for it.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from bench.support.hooks import SECRET, TYPE, endpoints
from bench.support.report import Result, finish
from bench.support.stack import server
from shared.postgres.connect import Connection, connect
from shared.postgres.recorder import PostgresRecorder
from tests.support.databases import Databases
from tests.support.processes import Program, Programs
from tests.support.receivers import OK, Peer, Receiver
from tests.support.waiting import until
from workers.pool.tree import children

LOCAL = {"WEIRKEEPER_OUTBOUND_HTTP": "yes", "WEIRKEEPER_OUTBOUND_ALLOW": "127.0.0.1"}
STEPS = (
    "webhook_fanout_begun", "webhook_fanned_out", "webhook_begun", "webhook_leased",
    "webhook_answered", "webhook_settled",
)  # fmt: skip
CHILD, PROCESS = "child, request in flight", "process, request in flight"
RUN_OUT = (
    "update weirkeeper.endpoint e set busy_until = clock_timestamp() - interval '1 s'"
    " from weirkeeper.delivery d where d.endpoint_id = e.id and e.busy_until > clock_timestamp()"
    " and d.state = 'pending'"
    " and exists (select from weirkeeper.attempt a where a.job_id = d.job_id)"
    " and not exists (select from weirkeeper.running r where r.job_id = d.job_id)"
)
LEFT = "select count(*) from weirkeeper.delivery where state <> 'delivered'"
MADE = "select count(*) from weirkeeper.delivery"
DEATHS = "select count(*) from weirkeeper.attempt where outcome in ('crashed', 'rescued')"


class Found(NamedTuple):
    """What a step left."""

    step: str
    kills: int
    deaths: int
    requests: int
    lost: int
    strange: int  # requests with an id that is no event's, or two of one endpoint at once


class Watching:
    """The receiver's behaviour: counts ids, and who is in flight; kills when it is told to."""

    def __init__(self, kill: Callable[[], None] | None = None) -> None:
        self.ids: Counter[str] = Counter()
        self.twice = 0
        self._kill = kill
        self._flying: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, peer: Peer) -> None:
        """Serve one connection."""
        request = peer.request()
        if not request:
            return
        path = request.split(b" ", 2)[1].decode()
        name = request.lower().partition(b"\r\nwebhook-id: ")[2].partition(b"\r\n")[0].decode()
        with self._lock:
            self.ids[name] += 1
            self._flying[path] += 1
            self.twice += self._flying[path] > 1
            odd = sum(self.ids.values()) % 2
        try:
            if self._kill is not None and odd:
                self._kill()
                peer.rest()  # until the killed one's end of the connection is gone
            else:
                peer.send(OK)
        finally:
            with self._lock:
                self._flying[path] -= 1


def main(argv: Sequence[str]) -> int:
    """Try; return 1 when anything was lost, sent under another id, or twice at once."""
    parser = argparse.ArgumentParser("script/bench delivery_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="at each step (50)")
    args = parser.parse_args(argv)
    with server() as databases:
        found = [_tried(databases, step, args.kills) for step in (*STEPS, CHILD, PROCESS)]
    lost = sum(one.lost + one.strange for one in found)
    return finish(Found._fields, found, Result("delivery_kills", float(lost), 0, "lower"))


def _tried(databases: Databases, step: str, kills: int) -> Found:
    url = databases.create()
    with (
        tempfile.TemporaryDirectory(prefix="wk-bench-") as folder,
        closing(connect(url, "b")) as conn,
    ):
        programs = Programs(Path(folder), url)
        programs.environment |= {
            **LOCAL,
            "WEIRKEEPER_SECRET": SECRET,
            "WEIRKEEPER_CHILDREN": "webhook=1",
        }
        if step in STEPS:
            programs.environment["WEIRKEEPER_APP"] = "bench.support.failing_app:app"
            programs.environment["TEST_FAILPOINTS"] = f"{step}@2=kill"
        try:
            return _Try(programs, conn, step, kills).run()
        finally:
            programs.close()
            databases.drop(url)


class _Try:
    def __init__(self, programs: Programs, conn: Connection, step: str, kills: int) -> None:
        self._programs = programs
        self._conn = conn
        self._step = step
        self._kills = kills
        self._queue: Program | None = None
        self._watching = Watching(self._kill if step in (CHILD, PROCESS) else None)

    def run(self) -> Found:
        """Deliver twice as many events as there are to be kills."""
        with Receiver(self._watching) as receiver:
            events = self._events(f"http://127.0.0.1:{receiver.port}/", 2 * self._kills)
            self._programs.start("relay")
            self._start()
            until(lambda: self._done(len(events)), 600, f"{self._step}: all are delivered")
        unknown = sum(1 for name in self._watching.ids if name not in events)
        lost = len(events - set(self._watching.ids)) + self._count(LEFT)
        return Found(
            self._step,
            self._kills,
            self._count(DEATHS),
            sum(self._watching.ids.values()),
            lost,
            unknown + self._watching.twice,
        )

    def _events(self, url: str, number: int) -> set[str]:
        recorder = PostgresRecorder(self._conn)
        made = set()
        for n in range(number):
            owner = f"owner {n}"
            endpoints(self._conn, f"{url}{n}", 1, LOCAL, owner)
            made.add(recorder.record(TYPE, owner_id=owner, subject="owner/1"))
        return made

    def _start(self) -> None:
        self._queue = self._programs.start("workers", "webhook")

    def _done(self, number: int) -> bool:
        self._conn.execute(RUN_OUT)
        if self._queue is not None and not self._queue.running():
            self._start()  # as supervisord does
        return self._count(MADE) == number and not self._count(LEFT)

    def _kill(self) -> None:
        if self._queue is None:
            return
        with suppress(ProcessLookupError, ValueError):
            if self._step == PROCESS:
                os.kill(self._queue.pid, signal.SIGKILL)
                return
            [fork_server] = children(self._queue.pid)
            for child in children(fork_server):
                os.kill(child, signal.SIGKILL)

    def _count(self, statement: str) -> int:
        row = self._conn.execute(statement).fetchone()
        return int(str(row[0])) if row else 0
