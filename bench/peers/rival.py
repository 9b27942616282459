"""A rival's side of a comparison: its own client and worker, two processes of its driver."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.peers.dialog import Dialog
from bench.support.contestant import PATIENCE, STAMP, Contestant, Seen, moments
from tests.support.databases import Databases

STARTS = "starts"


@dataclass(frozen=True, slots=True)
class Rival:
    """What must be known of one.

    Attributes:
        name: for the table.
        command: starts its driver; the database's URL is added.
        unfinished: SQL that tells whether a job has not ended.
        waits: whether a caller can wait for a job's end.
    """

    name: str
    command: Sequence[str]
    unfinished: str
    waits: bool


class Peer:
    """A contestant; see bench.support.contestant."""

    def __init__(self, rival: Rival, url: str, folder: Path) -> None:
        self.url = url
        self._rival = rival
        self._folder = folder
        self._dialogs: list[Dialog] = []
        self._conn = psycopg.connect(url, autocommit=True)
        self._client = self._open("client")
        self._worker = self._client
        self._client.ask("install")

    def fill(self, kind: str, jobs: int) -> float:
        """Its bulk function."""
        return float(self._client.ask("fill", kind=kind, jobs=jobs)["nanoseconds"]) / 1e9

    def load(self, kind: str, jobs: int) -> None:
        """Its bulk function."""
        self.fill(kind, jobs)

    def each(self, kind: str, jobs: int) -> float:
        """Its function for one job."""
        return float(self._client.ask("each", kind=kind, jobs=jobs)["nanoseconds"]) / 1e9

    def work(self, expected: int = 0) -> None:
        """Its worker, in a process of its own."""
        self._worker = self._open("worker")
        files = {"starts": str(self._folder / STARTS), "stamps": str(self._folder / STAMP)}
        answer = self._worker.ask("work", expected=expected, **files)
        assert answer == {"ready": True}, answer

    def starts(self) -> list[int]:
        """From the file that its worker writes after the last call."""
        self._worker.hear(PATIENCE)
        return moments(self._folder / STARTS)

    def put(self, kind: str) -> int:
        """Its function for one job."""
        return int(self._client.ask("put", kind=kind)["committed"])

    def wait(self, kind: str) -> Seen | None:
        """Its own way to wait, when it has one."""
        if not self._rival.waits:
            return None
        answer = self._client.ask("wait", kind=kind)
        return Seen(int(answer["committed"]), int(answer["seen"]))

    def stamps(self) -> list[int]:
        """From the file that its worker appends to."""
        return moments(self._folder / STAMP)

    def unfinished(self) -> bool:
        """Looks into its table."""
        row = self._conn.execute(self._rival.unfinished.encode()).fetchone()
        return bool(row and row[0])

    def close(self) -> None:
        """End its processes and our session."""
        self._conn.close()
        for dialog in reversed(self._dialogs):
            dialog.close()

    def _open(self, name: str) -> Dialog:
        dialog = Dialog([*self._rival.command, self.url], self._folder / f"{name}.err")
        self._dialogs.append(dialog)
        return dialog


@contextmanager
def peer(rival: Rival, server: Databases) -> Iterator[Contestant]:
    """A rival on a fresh database."""
    url = server.create_empty()
    with tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        contestant = Peer(rival, url, Path(folder))
        try:
            yield contestant
        finally:
            contestant.close()
            server.drop(url)
