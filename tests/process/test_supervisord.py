"""`supervisord -c supervisord.conf` by itself, with the two variables that its head names."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import psycopg
import pytest

from tests.support.processes import ROOT
from tests.support.waiting import until

CONFIGURATION = str(ROOT / "supervisord.conf")
COMMAND = [sys.executable, "-P", "-m", "supervisor.supervisord", "-c", CONFIGURATION]
READY = "select count(*) from weirkeeper.process where phase = 'ready'"
STOPPED = "select role from weirkeeper.process where phase = 'stopped' order by beat_at"


@pytest.fixture
def supervised(programs):
    """Programs with the two folders that must be there."""
    for name in ("run", "log"):
        (programs.home / name).mkdir(mode=0o700)
    return programs


def logged(programs):
    return "".join(file.read_text() for file in (programs.home / "log").glob("*.log"))


def start(programs):
    return programs.execute(COMMAND, {"WEIRKEEPER_PYTHON": sys.executable})


def ask(url, statement):
    with psycopg.connect(url, autocommit=True) as connection:
        return [row[0] for row in connection.execute(statement).fetchall()]


def until_ready(programs, url):
    until(lambda: ask(url, READY) == [8], 60, "all eight processes are ready")


def test_starts_and_stops_in_order(supervised, database_url):
    program = start(supervised)
    until_ready(supervised, database_url)
    assert program.terminate(45) == 0
    roles = ask(database_url, STOPPED)
    assert roles[0] == "relay"
    assert roles[1:6] == ["queue"] * 5
    assert roles[6:] == ["listener", "metrics"]
    until(lambda: not supervised.living(), 20, "everything has ended")


def test_standard_output_may_be_a_socket(supervised, database_url):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            COMMAND,
            cwd=ROOT,
            env={**supervised.environment, "WEIRKEEPER_PYTHON": sys.executable},
            stdout=theirs,
            stderr=theirs,
        )
        try:
            until_ready(supervised, database_url)
            assert "spawnerr" not in ours.recv(1 << 20).decode()
        finally:
            process.terminate()
            assert process.wait(45) == 0
    assert '"message": "ready"' in (supervised.home / "log" / "relay.log").read_text()
    assert '"message": "ready"' in (supervised.home / "log" / "index.log").read_text()


def test_no_line_is_lost_or_torn_in_a_file_that_is_written_from_its_beginning(
    supervised, database_url
):
    program = start(supervised)  # its log is opened as with >
    until_ready(supervised, database_url)
    # Supervisord says so only when startsecs have passed; a program may be ready before.
    until(lambda: program.text().count("success: ") >= 8, 30, "supervisord counts all as running")
    assert program.terminate(45) == 0
    lines = program.text().splitlines()
    assert all(line[:2] == "20" and line[19] == "," for line in lines)
    assert sum("stopped: " in line for line in lines) >= 8
    for file in (supervised.home / "log").glob("*.log"):
        if file.stem not in ("migrate", "supervisord"):
            assert all(json.loads(line) for line in file.read_text().splitlines())


@pytest.mark.slow
def test_migrates_an_empty_database(supervised, empty_database_url):
    supervised.environment["DATABASE_URL"] = empty_database_url
    program = start(supervised)

    def migrated():
        return ask(empty_database_url, "select to_regclass('weirkeeper.process') is not null")

    until(lambda: migrated() == [True], 30, "the schema is there")
    until_ready(supervised, empty_database_url)
    assert program.terminate(45) == 0


def test_programs_drain_when_supervisord_is_killed(supervised, database_url):
    program = start(supervised)
    until_ready(supervised, database_url)
    os.kill(program.pid, signal.SIGKILL)
    program.wait(30)
    until(lambda: len(ask(database_url, STOPPED)) == 8, 45, "all have stopped in order")
    until(lambda: not supervised.living(), 20, "everything has ended")


@pytest.mark.slow
def test_a_database_that_is_away_is_never_fatal(supervised, database_url, databases):
    supervised.environment["DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/none"
    program = start(supervised)
    until(lambda: "waiting for the database" in logged(supervised), 30, "the programs wait")
    until(lambda: program.text().count("entered RUNNING state") >= 8, 30, "they stay")
    assert "FATAL" not in program.text()
    assert "exited" not in program.text()
    assert program.terminate(45) == 0


def test_one_process_may_serve_all_queues(supervised, database_url):
    small = [*COMMAND[:-1], str(ROOT / "deploy/small.conf")]
    program = supervised.execute(small, {"WEIRKEEPER_PYTHON": sys.executable})
    until(
        lambda: ask(database_url, READY) == [4], 60, "relay, queues, listener and metrics are ready"
    )
    [queues] = ask(database_url, "select queues from weirkeeper.process where role = 'queue'")
    assert queues == {"index": 4, "notify": 2, "webhook": 8, "maintenance": 1, "fetch": 3}
    told = supervised.execute([sys.executable, "-P", "-m", "panel.cli.main", "status", "--json"])
    assert told.wait(30) == 0, told.text()
    assert json.loads(told.text())["told"] == "all 4 processes are ready"
    assert program.terminate(45) == 0
    assert ask(database_url, STOPPED)[:2] == ["relay", "queue"]
