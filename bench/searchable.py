"""From the commit that changes a note until a search finds it: one at a time, and an import.

One at a time: the processes are asleep, a note is written, and the clock runs from the moment its
commit returned until a waiter was told that the index job completed; then a search must find it.
The import: 2,000 notes in transactions of at most 200, until the last can be found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.support.figures import quantile
from bench.support.report import Result, finish
from bench.support.stack import stack
from shared.postgres.application.waits import PostgresWaits
from shared.postgres.driver.connect import connect
from shared.postgres.events.journeys import Journey, journeys
from shared.postgres.site.notes import PostgresNotes
from shared.postgres.site.search import PostgresSearch
from shared.site.folder import read_folder
from shared.site.imports import import_items
from shared.site.receipts import SUBSCRIPTION
from shared.site.search import Hit
from tests.support.waiting import pause

TARGET = 50.0  # ms, p99 of a single note
PAUSE = 0.1  # seconds in which everything falls asleep again
PATIENCE = 300.0
WORDS = (Path(__file__).resolve().parents[1] / "docs" / "site.md").read_text("utf-8")
CHINESE = "中继每次最多处理两百行，导入两千条笔记也不会变成一个巨大的事务。"


class Site:
    """The site of a running stack."""

    def __init__(self, url: str) -> None:
        self.conn = connect(url, "bench")
        self.waits = PostgresWaits(url, "bench")
        self.notes = PostgresNotes(self.conn)
        self.search = PostgresSearch(self.conn)

    def close(self) -> None:
        """End every connection."""
        self.waits.close()
        self.conn.close()

    def single(self, n: int) -> float:
        """Write one note; return milliseconds until a search finds it."""
        word = f"needle{n}"
        written = self.notes.create("bench", {"title": f"Note {n}", "body": f"{word} {WORDS}"})
        started = time.perf_counter()
        self.await_indexed([written.event_id])
        taken = (time.perf_counter() - started) * 1000
        assert [h.note_id for h in self.find(word)] == [written.id], f"{word} is not found"
        return taken

    def find(self, query: str) -> Sequence[Hit]:
        """Hits of a query."""
        return self.search.search(query, owner_id="bench", limit=100).hits

    def await_indexed(self, event_ids: Sequence[str]) -> None:
        """Return when the job of each event completed."""
        for event_id in event_ids:
            job_id = self.waits.await_fanout(event_id, SUBSCRIPTION, PATIENCE)
            assert job_id is not None, f"event {event_id} was not fanned out"
            answer = self.waits.wait(job_id, PATIENCE)
            assert answer.state == "completed", f"job {job_id} is {answer.state}"

    def import_many(self, count: int) -> tuple[float, float, list[Journey]]:
        """Import so many notes; return ms of the import, ms until all are found, journeys."""
        with tempfile.TemporaryDirectory(prefix="wk-notes-") as folder:
            _write(Path(folder), count)
            started = time.perf_counter()
            arrived = import_items(
                read_folder(Path(folder), print), self.notes, "bench", "wiki", print
            )
        events = [note.event_id for note in arrived]
        imported = (time.perf_counter() - started) * 1000
        self.await_indexed(events)
        found = (time.perf_counter() - started) * 1000
        return imported, found, journeys(self.conn, events, SUBSCRIPTION)


def main(argv: Sequence[str]) -> int:
    """Measure; return 0 when the target was met."""
    parser = argparse.ArgumentParser("script/bench searchable", description=__doc__)
    parser.add_argument("--singles", type=int, default=200, help="notes one at a time (200)")
    parser.add_argument("--notes", type=int, default=2000, help="notes of the import (2000)")
    args = parser.parse_args(argv)
    with stack((("relay",), ("workers", "index"))) as running:
        site = Site(running.url)
        try:
            singles = _singles(site, args.singles)
            imported, found, ways = site.import_many(args.notes)
        finally:
            site.close()
    finished = [way.finished * 1000 for way in ways if way.finished is not None]
    passes = Counter(way.relay_pass for way in ways)
    assert len(finished) == len(ways), "a note of the import is lost"
    p99 = quantile(singles, 0.99)
    rows = [
        ("single note, commit → found", len(singles), quantile(singles, 0.5), p99, max(singles)),
        (
            "note of the import, record → found",
            len(finished), quantile(finished, 0.5), quantile(finished, 0.99), max(finished),
        ),
        ("the import itself", len(ways), imported, imported, imported),
        ("the import, all found", len(ways), found, found, found),
        (f"notes a relay pass ({len(passes)})", len(ways), *_sizes(list(passes.values()))),
    ]  # fmt: skip
    return finish(
        ("what", "n", "p50 ms", "p99 ms", "max ms"),
        rows,
        Result("searchable", ours=p99, target=TARGET, better="lower"),
    )


def _singles(site: Site, count: int) -> list[float]:
    taken = []
    for n in range(count):
        pause(PAUSE, "everything falls asleep again")
        taken.append(site.single(n))
    return taken


def _sizes(sizes: list[int]) -> tuple[float, float, float]:
    return float(quantile(sizes, 0.5)), float(quantile(sizes, 0.99)), float(max(sizes))


def _write(folder: Path, count: int) -> None:
    """Notes of a few kilobytes, a hundred a folder."""
    for n in range(count):
        path = folder / f"part {n // 100:02}" / f"note {n:05}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Imported {n}\n\nunique{n} {CHINESE}\n\n{WORDS}", "utf-8")
