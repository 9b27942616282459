"""The database and the sessions that a state machine of jobs works on: two consumers of one queue."""

from __future__ import annotations

from shared.app import load_app
from shared.jobs.work import Claim
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Use, connect
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.claims import Claims

APP = "tests.support.app:app"
KINDS = ("t.ok", "t.noop")
CLEAR = (
    "truncate weirkeeper.job, weirkeeper.ready, weirkeeper.scheduled, weirkeeper.running,"
    " weirkeeper.attempt, weirkeeper.unique_key, weirkeeper.expiry, weirkeeper.parked, weirkeeper.key"
)
MOST = {"t.ok": 1, "t.noop": 2}  # jobs of a kind with its key at once; the key is its name


class Consumer:
    """A queue process's claims: its session, its epoch, what it holds."""

    def __init__(self, url: str, number: int) -> None:
        self.conn = connect(url, f"consumer {number}", Use.HOT)
        self.epoch = number + 1
        self.begin()

    def begin(self) -> None:
        """A new life of the process."""
        self.epoch += 10
        self.claims = Claims(self.conn, "t", self.epoch)
        self.held: dict[str, Claim] = {}


class World:
    """The database and its sessions, for all examples."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.conn = connect(url, "world")
        declare(self.conn, load_app(APP))
        for kind, most in MOST.items():
            self.conn.execute(
                "update weirkeeper.kind set max_per_key = %s where name = %s", (most, kind)
            )
        self.jobs = PostgresJobs(self.conn)
        self.inspector = PostgresInspector(self.conn)
        self.consumers = [Consumer(url, n) for n in (0, 1)]

    def clear(self) -> None:
        self.conn.execute(CLEAR)
        for consumer in self.consumers:
            consumer.begin()

    def close(self) -> None:
        for session in (self.conn, *(consumer.conn for consumer in self.consumers)):
            session.close()
