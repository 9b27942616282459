"""A Postgres that is away for longer than a lease, under a supervisor."""

from __future__ import annotations

import sys
import time

import pytest

from tests.support.bounds import at_most
from tests.support.gate import Gate
from tests.support.processes import ROOT
from tests.support.queue import TestQueue, alive
from tests.support.waiting import pause, until

SUPERVISOR = """
[supervisord]
nodaemon=true
logfile=/dev/null
logfile_maxbytes=0
pidfile={home}/supervisord.pid
[program:t]
command={python} -P -m weirkeeper.identity workers t
directory={root}
autorestart=unexpected
exitcodes=0,78
startsecs=5
startretries=10
stopwaitsecs=30
killasgroup=true
stdout_logfile={home}/t.log
redirect_stderr=true
"""


def supervised(programs, queue):
    """A supervisord with a queue process, as supervisord.conf has it."""
    file = programs.home / "supervisord.conf"
    file.write_text(SUPERVISOR.format(home=programs.home, python=sys.executable, root=ROOT))
    command = [sys.executable, "-P", "-m", "supervisor.supervisord", "-c", str(file)]
    return programs.execute(command, queue.env)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_database_that_is_away_at_boot_is_waited_for_and_nothing_is_given_up(
    programs, database_url
):
    gate = Gate(database_url)
    programs.environment["DATABASE_URL"] = gate.url
    gate.shut()
    queue = TestQueue(programs, database_url)
    try:
        supervisord = supervised(programs, queue)
        job = queue.enqueue("ok")
        pause(60, "ten starts that fail at once would be given up by now")
        gate.open()
        assert queue.final(job, timeout=20)["outcome"] == "completed"
        assert "FATAL" not in supervisord.text()
        assert "exited" not in supervisord.text()
        assert supervisord.terminate(60) == 0
    finally:
        queue.conn.close()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_after_14_seconds_without_a_database_it_works_soon_again(programs, database_url):
    gate = Gate(database_url)
    programs.environment["DATABASE_URL"] = gate.url
    queue = TestQueue(programs, database_url)
    try:
        supervisord = supervised(programs, queue)
        assert queue.final(queue.enqueue("ok"), timeout=60)["outcome"] == "completed"
        kept = queue.enqueue("sleep", {"seconds": 60})
        queue.begun(kept, timeout=30)
        gate.shut()
        pause(14, "the outage that is tried: longer than the self-fence, shorter than a lease")
        gate.open()
        assert queue.final(queue.enqueue("ok"), timeout=20)["outcome"] == "completed"
        queue.begun(kept, times=2, timeout=30)
        assert "FATAL" not in supervisord.text()
        for _ in range(5):
            gate.shut()
            pause(0.3, "a blip")
            gate.open()
            assert queue.final(queue.enqueue("ok"), timeout=20)["outcome"] == "completed"
        until(lambda: sessions(queue) <= 3 + 4, 30, "no session is left over")
        assert supervisord.terminate(60) == 0
    finally:
        queue.conn.close()


def sessions(queue):
    row = queue.conn.execute(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and application_name like 'weirkeeper t %'"
    ).fetchone()
    return row[0]


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_long_outage_ends_what_runs_in_time_and_is_over_soon_after(programs, database_url):
    """15 minutes, told by 40 s: every pause between tries has reached its longest by then."""
    gate = Gate(database_url)
    programs.environment["DATABASE_URL"] = gate.url
    queue = TestQueue(programs, database_url)
    try:
        supervisord = supervised(programs, queue)
        kept = queue.enqueue("sleep", {"seconds": 200})
        child = queue.begun(kept, timeout=60)["pid"]
        gate.shut()
        shut = time.monotonic()
        until(lambda: not alive(child), at_most(12, busy=20), "no child outlives its lease")
        pause(max(0.0, shut + 40 - time.monotonic()), "the outage that is tried")
        gate.open()
        opened = time.monotonic()
        assert queue.final(queue.enqueue("ok"), timeout=40)["outcome"] == "completed"
        assert time.monotonic() - opened < at_most(10, busy=25)
        queue.begun(kept, times=2, timeout=30)
        assert "FATAL" not in supervisord.text()
        assert supervisord.terminate(60) == 0
    finally:
        queue.conn.close()
