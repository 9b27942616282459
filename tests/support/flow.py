"""The index flow as a test drives it: notes in a folder, our command line, what the database has."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from shared.services.process import start_time
from tests.support.processes import Program, Programs
from tests.support.waiting import until

CHINESE = "中继每次最多处理两百行"


def write_notes(folder: Path, count: int) -> Path:
    """That many notes of a few hundred bytes, a hundred a folder."""
    for n in range(count):
        path = folder / f"part {n // 100:02}" / f"note {n:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {n}\n\nunique{n} {CHINESE}\n" + "filler words here\n" * 20)
    return folder


def cli(programs: Programs, *arguments: str, env: Mapping[str, str] | None = None) -> Program:
    """Start `weirkeeper ARGUMENTS`."""
    return programs.execute([sys.executable, "-P", "-m", "panel.cli.main", *arguments], env)


def answer(programs: Programs, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
    """What `weirkeeper ARGUMENTS --json` answers."""
    program = cli(programs, *arguments, "--json", env=env)
    assert program.wait(120) == 0, program.text()
    text = program.text()
    return json.loads(text[min(i for i in (text.find("{"), text.find("[")) if i >= 0) :])


class Flow:
    """What the database has of the flow.

    Args:
        conn: in autocommit mode.
    """

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn

    def one(self, query: str, *params: Any) -> Any:
        """The first column of the first row."""
        row = self.conn.execute(query, params or None).fetchone()
        return row[0] if row else None

    def until_ready(self, *slots: str, beyond: int = 0) -> None:
        """Wait until programs of these slots are ready, of epochs above `beyond`."""
        until(
            lambda: (
                set(slots)
                <= {
                    row[0]
                    for row in self.conn.execute(
                        "select slot from weirkeeper.process where phase = 'ready' and epoch > %s",
                        (beyond,),
                    )
                }
            ),
            60,
            f"{', '.join(slots)} are ready",
        )

    def notes(self) -> int:
        """How many notes there are."""
        return self.one("select count(*) from site.note")

    def searchable(self) -> int:
        """How many notes the index has as they are now."""
        return self.one(
            "select count(*) from site.note n join site.document d on d.note_id = n.id"
            " where d.version = n.version and not d.removed"
        )

    def check_nothing_lost_or_doubled(self) -> None:
        """Every event has exactly one job, every job ended well, no relay pass was too big."""
        assert self.one("select count(*) from weirkeeper.event_pending") == 0
        assert (
            self.one(
                "select count(*) from weirkeeper.event e where not exists"
                " (select from weirkeeper.event_fanout f where f.event_id = e.id)"
            )
            == 0
        )
        assert (
            self.one(
                "select count(*) from (select event_id from weirkeeper.job"
                " where kind = 'corpus.index' group by event_id having count(*) > 1) twice"
            )
            == 0
        )
        assert self.one("select max(n) from (select count(*) n from weirkeeper.event_fanout"
                        " group by xmin::text) passes") <= 200  # fmt: skip

    def open_jobs(self) -> int:
        """Jobs of the flow that have not ended; its programs are not those of webhooks."""
        return self.one(
            "select count(*) from weirkeeper.job j where queue <> 'webhook' and not exists (select from"
            " weirkeeper.attempt a where a.job_id = j.id"
            " and a.state in ('completed', 'discarded', 'cancelled'))"
        )

    def pid(self, slot: str) -> int:
        """Process id of the newest life of a slot."""
        return self.one(
            "select pid from weirkeeper.process where slot = %s order by epoch desc limit 1", slot
        )


def below(pid: int) -> list[int]:
    """Process ids of everything that a process started, nearest first."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            continue
    return [*found, *(deeper for child in found for deeper in below(child))]


def lives(pids: list[int]) -> dict[int, int | None]:
    """Start times by id, to tell a process from a later one with its number."""
    return {pid: start_time(pid) for pid in pids}


def all_gone(before: Mapping[int, int | None]) -> bool:
    """Whether none of these processes lives."""
    return not any(started and start_time(pid) == started for pid, started in before.items())
