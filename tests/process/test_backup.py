"""Backup, restore and uninstall, as docs/operations.md tells them."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from shared.postgres.driver.connect import connect
from shared.postgres.inspection.verify import violations
from tests.support.databases import Databases
from tests.support.queue import TestQueue, queue
from tests.support.waiting import until
from weirkeeper.server import binaries
from weirkeeper.server.account import Account

__all__ = ["queue"]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text("utf-8")


def run(binary: str, *arguments: str, check: bool = True) -> None:
    path = binaries.find("", Account.choose("nobody")) / binary
    subprocess.run([str(path), *arguments], check=check, capture_output=True, timeout=120)


@pytest.mark.timeout(180)
def test_a_backup_taken_while_jobs_run_goes_on_after_a_restore(
    queue: TestQueue, databases: Databases, short_tmp: Path
) -> None:
    program = queue.start()
    done = queue.enqueue("ok")
    queue.final(done)
    running = queue.enqueue("sleep", {"seconds": 1.5})
    queue.begun(running)
    later = queue.enqueue("ok", run_at=queue.conn.execute("select now() + '1 h'").fetchone()[0])
    event = queue.record(subject="before")
    file = str(short_tmp / "backup")
    run("pg_dump", "--format=custom", f"--file={file}", queue.url)
    queue.final(running)
    queue.final(queue.enqueue("ok"))  # after the backup: gone
    program.send(signal.SIGKILL)
    program.wait(10)

    restored = databases.create_empty()
    # It complains of a setting when the server is older than itself; what came of it is seen below.
    run("pg_restore", "--no-owner", f"--dbname={restored}", file, check=False)
    again = TestQueue(queue.programs, restored)
    again.programs.environment["DATABASE_URL"] = restored
    try:
        assert again.where(running) == ["running"]
        again.start()
        again.programs.start("relay", env=again.env)
        assert again.final(running, timeout=40)["outcome"] == "completed"
        assert again.outcomes(running)[0] == "rescued"
        assert again.outcomes(done) == ["completed"]
        assert again.where(later) == ["scheduled"]
        new = again.enqueue("ok")
        assert int(new) > int(later)
        again.final(new)
        fanned = "select jobs->>'t.event' from weirkeeper.event_fanout where event_id = %s"
        until(lambda: again.conn.execute(fanned, (event,)).fetchone(), 30, "the event goes on")
        again.final(again.conn.execute(fanned, (event,)).fetchone()[0])
        assert violations(again.conn, 86_400) == []
    finally:
        again.conn.close()
        again.programs.close()
        databases.drop(restored)


def test_a_copy_can_be_paused_as_a_whole_before_it_starts(queue: TestQueue) -> None:
    [pause] = re.findall(r"`(select weirkeeper\.pause[^`]+)`", PAGE)
    queue.conn.execute(pause)
    queue.start()
    job = queue.enqueue("ok")
    assert queue.where(job) == ["ready"]
    queue.conn.execute("select weirkeeper.resume(queue => 't')")
    assert queue.final(job)["outcome"] == "completed"


def test_nothing_is_left_after_an_uninstall(database_url: str) -> None:
    section = PAGE.split("\n## Uninstalling\n")[1].split("\n## ")[0]
    [drop] = re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
    with connect(database_url, "test") as conn:
        conn.execute(drop)
        assert conn.execute(LEFT).fetchall() == []
    with psycopg.connect(database_url) as conn:
        assert conn.execute("select to_regnamespace('weirkeeper')").fetchone() == (None,)


LEFT = """
    select 'schema', nspname from pg_namespace
    where nspname !~ '^pg_' and nspname not in ('information_schema', 'public')
    union all
    select 'relation', c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public'
    union all
    select 'extension', extname from pg_extension where extname <> 'plpgsql'
    union all
    select 'event trigger', evtname from pg_event_trigger"""
