"""`supervisord -c supervisord.conf` by itself, with the two variables that its head names."""

from __future__ import annotations

import os
import signal
import sys

import psycopg
import pytest

from tests.support.processes import ROOT
from tests.support.waiting import until

READY = "select count(*) from weirkeeper.process where phase = 'ready'"
STOPPED = "select role from weirkeeper.process where phase = 'stopped' order by beat_at"


@pytest.fixture
def supervised(programs):
    """Programs with the one folder that must be there."""
    (programs.home / "run").mkdir(mode=0o700)
    return programs


def start(programs, *more):
    configuration = str(ROOT / "supervisord.conf")
    command = [sys.executable, "-P", "-m", "supervisor.supervisord", "-c", configuration, *more]
    return programs.execute(command, {"WEIRKEEPER_PYTHON": sys.executable})


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
    until(lambda: not supervised.living(), 5, "everything has ended")


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
    program.wait(5)
    until(lambda: len(ask(database_url, STOPPED)) == 8, 45, "all have stopped in order")
    until(lambda: not supervised.living(), 5, "everything has ended")


@pytest.mark.slow
def test_a_database_that_is_away_is_never_fatal(supervised, database_url, databases):
    supervised.environment["DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/none"
    program = start(supervised)
    until(lambda: "waiting for the database" in program.text(), 30, "the programs wait")
    until(lambda: program.text().count("entered RUNNING state") >= 8, 30, "they stay")
    assert "FATAL" not in program.text()
    assert "exited" not in program.text()
    assert program.terminate(45) == 0
