"""What one dead endpoint with 10,000 waiting deliveries costs fifty healthy ones.

Fifty owners each have an endpoint that answers at once and record one event a second; timed is
from the commit to the arrival at the receiver, through relay, fan-out and delivery. In turns
without and with a further endpoint at which nobody listens and for which 10,000 deliveries wait:
made beforehand, of events that are fanned out already, and waited for until they wait.
Judged are the median of the rounds' p99, and the share of all attempts that went to the dead one.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.support.figures import interleaved, median, quantile
from bench.support.hooks import SECRET, TYPE, endpoints
from bench.support.report import Result, finish
from bench.support.stack import database
from shared.postgres.driver.connect import Connection, connect
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.webhooks.deliveries import PostgresDeliveries
from shared.webhooks.body import encode
from tests.support.processes import Programs
from tests.support.receivers import OK, Peer, Receiver
from tests.support.waiting import until

RATIO = 1.2
SHARE = 0.01  # of all attempts, on the dead endpoint's deliveries
LOCAL = {"WEIRKEEPER_OUTBOUND_HTTP": "yes", "WEIRKEEPER_OUTBOUND_ALLOW": "127.0.0.1"}
NOBODY = "http://127.0.0.1:9/"  # where nothing listens
READY = "select count(*) from weirkeeper.process where phase = 'ready'"
FANNED_OUT = "select not exists (select from weirkeeper.event_pending)"
PARKED = (
    "select not exists (select from weirkeeper.ready where queue = 'webhook')"
    " and not exists (select from weirkeeper.running where queue = 'webhook')"
)
TRIES = (
    "select count(*) filter (where e.owner_id = 'dead'), count(*)"
    " from weirkeeper.delivery_attempt a join weirkeeper.delivery d on d.id = a.delivery_id"
    " join weirkeeper.endpoint e on e.id = d.endpoint_id"
)


class Arrivals:
    """A receiver's behaviour: notes when each event came."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def __call__(self, peer: Peer) -> None:
        """Serve one connection."""
        request = peer.request()
        if request:
            _, _, rest = request.lower().partition(b"\r\nwebhook-id: ")
            self.at.setdefault(rest.partition(b"\r\n")[0].decode(), time.monotonic())
            peer.send(OK)


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when a target was missed."""
    parser = argparse.ArgumentParser("script/bench dead_endpoint", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of both (7)")
    parser.add_argument("--healthy", type=int, default=50, help="endpoints (50)")
    parser.add_argument("--waiting", type=int, default=10_000, help="for the dead one (10,000)")
    parser.add_argument("--seconds", type=int, default=10, help="a round (10)")
    args = parser.parse_args(argv)
    arrivals = Arrivals()
    with (
        database() as url,
        tempfile.TemporaryDirectory(prefix="wk-bench-") as folder,
        closing(connect(url, "bench")) as conn,
        Receiver(arrivals) as receiver,
    ):
        programs = Programs(Path(folder), url)
        programs.environment |= {**LOCAL, "WEIRKEEPER_SECRET": SECRET}
        try:
            address = f"http://127.0.0.1:{receiver.port}/"
            bench = _Bench(conn, arrivals, address, args.healthy, args.seconds)
            programs.start("relay")
            programs.start("workers", "webhook")
            until(lambda: conn.execute(READY).fetchone() == (2,), 60, "relay and queue are ready")
            bench.prepare(args.waiting)
            bench.p99()  # warm
            ways = {"alone": bench.p99, "beside the dead one": bench.beside}
            taken = interleaved(ways, args.rounds)
            row = conn.execute(TRIES).fetchone()
        finally:
            programs.close()
    dead, tries = (int(str(value)) for value in row) if row else (0, 1)
    rows = [(what, len(p99s), min(p99s), median(p99s), max(p99s)) for what, p99s in taken.items()]
    alone, beside = median(taken["alone"]), median(taken["beside the dead one"])
    share = Result("share of attempts on the dead one", dead / tries, SHARE, "lower")
    result = Result("dead_endpoint", beside, RATIO, "lower", alone, relative=True, also=(share,))
    return finish(("p99 ms", "rounds", "least", "median", "most"), rows, result)


class _Bench:
    def __init__(
        self, conn: Connection, arrivals: Arrivals, url: str, healthy: int, seconds: int
    ) -> None:
        self._conn = conn
        self._arrivals = arrivals
        self._seconds = seconds
        self._owners = [f"owner {n}" for n in range(healthy)]
        for owner in self._owners:
            endpoints(conn, url, 1, LOCAL, owner)
        self._waiting: list[tuple[str, bytes]] = []

    def prepare(self, waiting: int) -> None:
        """Record what is to wait for the dead endpoint, before its owner has one."""
        recorder, deliveries = PostgresRecorder(self._conn), PostgresDeliveries(self._conn)
        with self._conn.transaction():
            for n in range(waiting):
                event = recorder.record(TYPE, owner_id="dead", subject=f"owner/{n}")
                message = deliveries.message(event)
                assert message is not None
                self._waiting.append((event, encode(message)))
        until(lambda: self._is(FANNED_OUT), 60, "all is fanned out")

    def p99(self) -> float:
        """Milliseconds from commit to arrival, one event a second and owner."""
        pause = threading.Event()
        recorder = PostgresRecorder(self._conn)
        recorded: dict[str, float] = {}
        gap = 1.0 / len(self._owners)
        due = time.monotonic()
        for _ in range(self._seconds):
            for owner in self._owners:
                due += gap
                pause.wait(max(0.0, due - time.monotonic()))
                event = recorder.record(TYPE, owner_id=owner, subject="owner/1")
                recorded[event] = time.monotonic()
        until(lambda: recorded.keys() <= self._arrivals.at.keys(), 60, "all have arrived")
        return quantile([self._arrivals.at[e] - at for e, at in recorded.items()], 0.99) * 1000

    def beside(self) -> float:
        """Milliseconds, while so many deliveries wait for an endpoint at which nobody listens."""
        [dead] = endpoints(self._conn, NOBODY, 1, LOCAL, "dead")
        deliveries = PostgresDeliveries(self._conn)
        with self._conn.transaction():
            for event, body in self._waiting:
                deliveries.add(int(dead), event, body, "auto")
        until(lambda: self._tried(dead) and self._is(PARKED), 60, "the dead one's all wait")
        try:
            return self.p99()
        finally:
            self._conn.execute("select weirkeeper.disable_endpoint(%s, 'manual')", (dead,))

    def _tried(self, endpoint: str) -> bool:
        found = self._conn.execute(
            "select 1 from weirkeeper.endpoint where id = %s and failures > 0", (endpoint,)
        ).fetchone()
        return found is not None

    def _is(self, question: str) -> bool:
        return self._conn.execute(question).fetchone() == (True,)
