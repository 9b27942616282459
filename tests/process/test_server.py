"""`weirkeeper server` from start to stop, with real processes on its own embedded Postgres."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from urllib.request import urlopen

import pytest

from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import connect
from tests.process.servers import START, STOP, Server, can_nobody_run_python
from tests.support.app import EFFECTS
from tests.support.processes import ROOT, Programs
from tests.support.queue import APP
from tests.support.waiting import until
from weirkeeper.server import own


@pytest.fixture
def embedded(short_tmp):
    """Programs of a home with its own Postgres."""
    programs = Programs(short_tmp, "")
    yield programs
    programs.close()


def nothing_left(programs: Programs, server: Server) -> bool:
    return not programs.living() and server.postmaster() is None


def test_start_work_stop_and_the_data_stay(embedded):
    first = Server(embedded).until_ready()
    assert "ready after" in first.program.text()
    event = first.ask("select weirkeeper.record_event('corpus.note.changed', subject => 'til://x')")

    # What it leaves for others is for us alone, and leads to the database from any shell.
    assert stat.S_IMODE(first.home.stat().st_mode) == 0o700
    for name in ("run/server.json", "run/database_url", "run/supervisord.conf", own.FILE):
        assert stat.S_IMODE((first.home / name).stat().st_mode) == 0o600
    made = {"WEIRKEEPER_SECRET": (first.home / own.FILE).read_text().strip()}
    assert first.published()["settings"] == made, "it opens nothing that nobody asked for"
    password = first.published()["database_url"].split(":")[2].split("@")[0]
    assert password not in first.told()
    assert first.ask("show max_connections") == "120"
    assert "ERROR" not in (first.home / "log" / "postgres.log").read_text()
    assert first.ask("show fsync") == "on"
    assert first.ask("show client_connection_check_interval") == "1s"
    said = subprocess.run(
        [first.home / "run" / "psql", "-Atc", "select 40 + 2"],
        check=True, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert said.stdout == "42\n"

    # Port 0: free ones were found, and answer.
    for address in first.addresses().values():
        host, port = address.split(":")
        socket.create_connection((host, int(port)), timeout=5).close()

    # A second server on the same home is refused, and the first one does not notice.
    second = Server(embedded)
    assert second.program.wait(30) == 78
    assert f"used by process {first.program.pid}" in second.program.text()
    assert len(second.program.text().splitlines()) == 1

    assert first.stop(signal.SIGINT) == 0
    assert "stopped after" in first.program.text()
    until(lambda: nothing_left(embedded, first), 20, "everything has ended")
    assert not (first.home / "run" / "server.json").exists()

    again = Server(embedded).until_ready()
    assert again.published()["settings"] == made
    assert again.ask(f"select count(*) from weirkeeper.event where id = '{event}'") == 1
    assert again.stop() == 0


@pytest.mark.slow
def test_on_a_database_of_somebody_else(programs):
    server = Server(programs).until_ready()
    assert server.postmaster() is None
    assert server.published()["embedded"] is False
    assert server.ask("select count(*) from weirkeeper.process where phase = 'ready'") == 8
    assert server.stop() == 0
    until(lambda: not programs.living(), 20, "everything has ended")


def test_a_program_that_is_started_again_answers_where_the_greeting_said(programs):
    """Its port was 0: a free one."""
    server = Server(programs).until_ready()
    for role, address in server.addresses().items():
        which = f"from weirkeeper.process where role = '{role}' and phase = 'ready'"
        before = server.ask(f"select pid {which}")
        os.kill(before, signal.SIGKILL)
        until(
            lambda old=before, rows=which: server.ask(f"select max(pid) {rows} and pid <> {old}"),
            30,
            f"another {role} is ready",
        )
        host, port = address.split(":")
        with urlopen(f"http://{host}:{port}/livez", timeout=10) as answer:
            assert answer.status == 200
    assert server.stop() == 0


@pytest.mark.slow
def test_a_stop_says_what_it_waits_for_and_a_second_one_that_it_is_heard(programs, database_url):
    app = {"WEIRKEEPER_APP": APP, EFFECTS: str(programs.home / "effects")}
    bounds = {"WEIRKEEPER_DRAIN_SECONDS": "8", "WEIRKEEPER_GRACE_SECONDS": "0.5"}
    server = Server(programs, {**app, **bounds}).until_ready()
    with connect(database_url, "test") as conn:
        job = PostgresJobs(conn).enqueue("t.sleep", {"seconds": 60}, EnqueueOpts())
    until((programs.home / "effects").exists, 10, "the job runs")

    # Any shell judges what this server runs, whatever its own WEIRKEEPER_APP.
    status = subprocess.run(
        [sys.executable, "-P", "-m", "panel.cli.main", "status", "--json"],
        env=programs.environment, cwd=ROOT, check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    found = json.loads(status.stdout)
    assert found["told"] == f"all {len(found['processes'])} processes are ready"
    assert "t" in [process["slot"] for process in found["processes"]]

    server.program.send(signal.SIGINT)
    running = rf"1 job still runs \(t.sleep {job}\), at most [1-8] s more"
    until(lambda: re.search(f"^{running}$", server.program.text(), re.MULTILINE), 20, "it tells")
    server.program.send(signal.SIGINT)
    heard = f"^already stopping; {running}$"
    until(lambda: re.search(heard, server.program.text(), re.MULTILINE), 20, "it has heard")
    assert server.program.wait(STOP) == 0
    log = [json.loads(line) for line in (programs.home / "log" / "t.log").read_text().splitlines()]
    [drained] = [entry for entry in log if entry["message"] == "drained"]
    assert drained["seconds"].keys() == {"give_back", "wait", "interrupt", "flush"}
    assert drained["jobs"]["interrupted"] == 1


def test_a_killed_server_takes_everything_along_and_the_next_one_starts(embedded):
    killed = Server(embedded).until_ready()
    killed.program.send(signal.SIGKILL)
    killed.program.wait(30)
    again = Server(embedded).until_ready()
    assert again.ask("select count(*) from weirkeeper.process where phase = 'ready'") == 8
    assert again.stop() == 0
    until(lambda: nothing_left(embedded, again), 20, "everything has ended")


def test_a_killed_supervisord_ends_the_server_in_order(embedded):
    server = Server(embedded).until_ready()
    os.kill(server.supervisord(), signal.SIGKILL)
    assert server.program.wait(STOP) == 1
    assert "supervisord ended by itself" in server.program.text()
    until(lambda: nothing_left(embedded, server), 20, "everything has ended")


@pytest.mark.slow
def test_a_stop_while_it_starts(embedded):
    server = Server(embedded)
    until((server.home / "run" / "supervisord.pid").exists, START, "supervisord runs")
    assert server.stop() == 0
    until(lambda: nothing_left(embedded, server), 20, "everything has ended")


def test_a_program_that_refuses_to_start_ends_the_server_with_its_words(embedded):
    (embedded.home / "conf").mkdir()
    refuses = "/bin/sh -c 'echo \"relay: expected better; got this\"; exit 78'"
    (embedded.home / "conf" / "mine.conf").write_text(f"[program:relay]\ncommand={refuses}\n")
    server = Server(embedded)
    assert server.program.wait(START) == 78
    told = "weirkeeper server: program relay does not start: relay: expected better; got this"
    assert told in server.program.text()
    until(lambda: nothing_left(embedded, server), 20, "everything has ended")


@pytest.mark.parametrize("seconds", [0.3, 0.7, 1.1, 1.6])
@pytest.mark.slow
def test_a_first_run_that_was_killed_is_taken_up_again(embedded, seconds):
    killed = Server(embedded)
    with pytest.raises(subprocess.TimeoutExpired):
        killed.program.popen.wait(seconds)
    for pid in (killed.program.pid, *embedded.living()):
        os.kill(pid, signal.SIGKILL)
    killed.program.wait(30)
    again = Server(embedded).until_ready()
    assert again.ask("select count(*) from weirkeeper.process where phase = 'ready'") == 8
    assert again.stop() == 0


@pytest.mark.slow
def test_a_home_with_a_long_path_and_signs_in_it(embedded, short_tmp):
    home = short_tmp / ("it's a long path " + "x" * 90)
    server = Server(embedded, {"WEIRKEEPER_HOME": str(home)}).until_ready()
    assert server.stop() == 0


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(not can_nobody_run_python(), reason="nobody cannot enter Python's folder")
def test_as_an_ordinary_user(embedded, short_tmp):
    os.chown(short_tmp, 65534, 65534)
    short_tmp.chmod(0o755)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    program = embedded.execute([*command, sys.executable, "-P", "-m", "weirkeeper.server"])
    until(lambda: "Ctrl-C drains" in program.text() or not program.running(), 90, "it is ready")
    assert program.running(), program.text()
    assert (short_tmp / "postgres" / "PG_VERSION").stat().st_uid == 65534
    assert program.terminate(STOP) == 0
