"""Deliveries killed at a chosen step, many at a time, and a receiver that sees what comes of it.

Six steps are failpoints in the handlers, at which each child kills itself the second time it comes
there; at the seventh every child is killed while the receiver holds its request, at the eighth the
queue process. Each endpoint gets several events, so that a lease is at stake, too. What a death makes
wait (a lease that has to run out, a retry's delay, a kind put aside) is cut short: the wait is not what
is tried.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import LiteralString, NamedTuple

from shared.postgres.inspection.verify import violations
from tests.support.hooks import LOCAL, Hooks
from tests.support.processes import Program, Programs
from tests.support.receivers import OK, Peer, Receiver
from tests.support.waiting import pause, until
from workers.pool.tree import children

FAILPOINTS = (
    "webhook_fanout_begun", "webhook_fanned_out", "webhook_begun", "webhook_leased",
    "webhook_answered", "webhook_settled",
)  # fmt: skip
CHILD, PROCESS = "child, request in flight", "process, request in flight"
STEPS = (*FAILPOINTS, CHILD, PROCESS)
SENT = (
    "webhook_answered",
    CHILD,
    PROCESS,
)  # the receiver had it: it comes again, under the same id
EACH = 3  # events of an endpoint
PATIENCE = 100.0  # seconds until it is told what was not delivered
HELD = 0.3  # seconds that a request is held before the kill, so that others come beside it

# A lease whose holder is dead: of an endpoint none of whose deliveries runs.
RUN_OUT = """
with dead as (
  update weirkeeper.endpoint e set busy_until = clock_timestamp() - interval '1 s'
  where e.busy_until > clock_timestamp() and not exists (
    select from weirkeeper.delivery d join weirkeeper.running r on r.job_id = d.job_id
    where d.endpoint_id = e.id)
  returning e.id)
select weirkeeper.open_endpoint(dead.id) from dead
"""
AT_ONCE = """
select weirkeeper.retry_jobs(array(select job_id from weirkeeper.scheduled where queue = 'webhook'))
"""
NOT_PUT_ASIDE = "select weirkeeper.resume(kind => name) from weirkeeper.paused where what = 'kind'"
DEATHS = "select count(*) from weirkeeper.attempt where outcome in ('crashed', 'rescued')"
LEFT = """
select count(*) filter (where state <> 'delivered'), count(*) filter (where tries <> 1)
from weirkeeper.delivery
"""
READY = "select count(*) from weirkeeper.process where phase = 'ready'"
MADE = "select count(*) from weirkeeper.delivery where state = 'delivered'"


class Found(NamedTuple):
    """What a step left.

    Attributes:
        step: where it was killed.
        deaths: jobs that were killed there.
        events: that were to be delivered.
        requests: that the receiver got.
        lost: events that it never got, or whose delivery does not stand as delivered.
        strange: what must not be, with its number: a request under an id that is no event's; two to
            one endpoint at once; more of them than kills explain; a try that was counted twice or
            not at all; what `weirkeeper verify` finds.
    """

    step: str
    deaths: int
    events: int
    requests: int
    lost: int
    strange: Mapping[str, int]


class Watching:
    """The receiver's behaviour: who is in flight, and how often each event came.

    Args:
        holds: a request that comes for the first time is not answered.
    """

    def __init__(self, *, holds: bool) -> None:
        self.ids: Counter[str] = Counter()
        self.twice = 0
        self._holds = holds
        self._held: dict[int, float] = {}
        self._flying: dict[str, list[Peer]] = {}
        self._lock = threading.Lock()

    def __call__(self, peer: Peer) -> None:
        """Serve one connection."""
        request = peer.request()
        if not request:
            return
        path = request.split(b" ", 2)[1].decode()
        name = request.lower().partition(b"\r\nwebhook-id: ")[2].partition(b"\r\n")[0].decode()
        with self._lock:
            flying = self._flying.setdefault(path, [])
            self.twice += any(other.alive() for other in flying)
            flying.append(peer)
            self.ids[name] += 1
            held = self._holds and self.ids[name] == 1
            if held:
                self._held[id(peer)] = time.monotonic()
        try:
            if held:
                peer.rest()
            else:
                peer.send(OK)
        finally:
            with self._lock:
                flying.remove(peer)
                self._held.pop(id(peer), None)

    def longest(self) -> float:
        """Seconds that a request has been held for."""
        with self._lock:
            return time.monotonic() - min(self._held.values(), default=time.monotonic())


class DeliveryKills:
    """One step: a database of its own, relay and queue process on it, and the receiver.

    Args:
        programs: whose environment they get.
        url: of the database.
        step: where to kill.
    """

    def __init__(self, programs: Programs, url: str, step: str) -> None:
        self._step = step
        self._programs = programs
        self._hooks = Hooks(url)
        self._watching = Watching(holds=step in (CHILD, PROCESS))
        self._env = dict(LOCAL)
        if step in FAILPOINTS:
            self._env["WEIRKEEPER_APP"] = "tests.support.failing_app:app"
            self._env["TEST_FAILPOINTS"] = f"{step}@2=kill"

    def run(self, kills: int) -> Found:
        """Deliver events until so many jobs were killed at the step, and nothing is left to do."""
        events: set[str] = set()
        with Receiver(self._watching) as receiver:
            self._programs.start("relay", env=self._env)
            queue = self._start()
            until(lambda: self._number(READY) == 2, 60, "relay and queue process are ready")
            while self._number(DEATHS) < kills:
                events |= self._record(f"http://127.0.0.1:{receiver.port}/", kills)
                deadline = time.monotonic() + PATIENCE
                while self._number(MADE) < len(events) and time.monotonic() < deadline:
                    queue = self._go_on(queue)
        return self._found(events)

    def close(self) -> None:
        """End its session."""
        self._hooks.close()

    def _found(self, events: set[str]) -> Found:
        ids, deaths = self._watching.ids, self._number(DEATHS)
        again = ids.total() - len(events)
        row = self._hooks.conn.execute(LEFT).fetchone() or (0, 0)
        undelivered, miscounted = (int(str(n)) for n in row)
        strange = {
            "of no event": len(set(ids) - events),
            "two at once": self._watching.twice,
            "again for no reason": max(0, again - (deaths if self._step in SENT else 0)),
            "tries miscounted": miscounted,
            "rows that cannot be": len(violations(self._hooks.conn, 86_400.0)),
        }
        return Found(
            self._step, deaths, len(events), ids.total(),
            len(events - set(ids)) + undelivered, {k: n for k, n in strange.items() if n},
        )  # fmt: skip

    def _record(self, url: str, number: int) -> set[str]:
        """Events for new endpoints, some to each."""
        made = set()
        for n in range(0, number, EACH):
            owner = f"owner {n} of {time.monotonic_ns()}"
            self._hooks.endpoint(owner, f"{url}{owner.replace(' ', '-')}")
            made |= {self._hooks.event(owner) for _ in range(EACH)}
        return made

    def _start(self) -> Program:
        return self._programs.start("workers", "webhook", env=self._env)

    def _go_on(self, queue: Program) -> Program:
        """Kill, if it is time to; have nobody wait for what a death left."""
        if self._watching.longest() > HELD:
            self._kill(queue)
        for statement in (RUN_OUT, AT_ONCE, NOT_PUT_ASIDE):
            self._hooks.conn.execute(statement)
        pause(0.02, "of the engine, between two interventions")
        return queue if queue.running() else self._start()  # as supervisord does

    def _kill(self, queue: Program) -> None:
        if self._step == PROCESS:
            queue.send(signal.SIGKILL)
            queue.wait(10)
            return
        with suppress(ProcessLookupError, ValueError):
            [fork_server] = children(queue.pid)
            for child in children(fork_server):
                os.kill(child, signal.SIGKILL)

    def _number(self, statement: LiteralString) -> int:
        row = self._hooks.conn.execute(statement).fetchone()
        return int(str(row[0])) if row else 0
