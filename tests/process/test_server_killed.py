"""A server whose supervisord dies while its programs still start, or that is stopped as early."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.servers import START, Server
from tests.support.processes import Programs
from tests.support.waiting import until

SOME = 5  # children of supervisord from which on the clock of a kill runs
GONE = 15.0  # seconds; far below a drain, after which a next server would end what is left
DELAYS = (0.0, 0.05, 0.1, 0.2, 0.4)


@pytest.fixture
def embedded(short_tmp):
    """Programs of a home with its own Postgres."""
    programs = Programs(short_tmp, "")
    yield programs
    programs.close()


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def kill_supervisord(server: Server, delay: float) -> None:
    """End it as soon as it has started some programs and the delay has passed."""
    pid_file = server.home / "run" / "supervisord.pid"
    until(lambda: pid_file.exists() and pid_file.read_text().strip(), START, "supervisord runs")
    supervisord = server.supervisord()
    until(lambda: len(children(supervisord)) >= SOME, START, "it has started programs")
    with pytest.raises(subprocess.TimeoutExpired):
        server.program.popen.wait(delay)
    os.kill(supervisord, signal.SIGKILL)


@pytest.mark.parametrize("delay", DELAYS)
def test_programs_that_start_end_with_their_supervisord(programs, delay):
    server = Server(programs)
    kill_supervisord(server, delay)
    until(lambda: not programs.living(), GONE, "everything has ended")
    assert server.program.wait(30) == 1


@pytest.mark.slow
def test_so_does_its_postgres_and_a_next_server_starts(embedded):
    first = Server(embedded).until_ready()
    assert first.stop() == 0
    killed = Server(embedded)
    kill_supervisord(killed, 0.0)
    os.kill(killed.program.pid, signal.SIGKILL)
    killed.program.wait(30)
    until(lambda: not embedded.living() and killed.postmaster() is None, GONE, "all have ended")
    again = Server(embedded).until_ready()
    assert again.stop() == 0


@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_so_they_do_under_plain_supervisord(programs, delay):
    for name in ("run", "log"):
        (programs.home / name).mkdir(mode=0o700)
    command = [sys.executable, "-P", "-m", "supervisor.supervisord", "-c", "supervisord.conf"]
    program = programs.execute(command, {"WEIRKEEPER_PYTHON": sys.executable})
    kill_supervisord(Server(programs, program=program), delay)
    until(lambda: not programs.living(), GONE, "everything has ended")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_while_it_waits_for_an_earlier_server(programs, number):
    left = programs.execute(["sleep", "60"], {"SUPERVISOR_PROCESS_NAME": "index"})
    server = Server(programs)
    told = f"waiting for processes of an earlier server to drain: index ({left.pid})"
    until(lambda: told in server.program.text(), 20, "it waits")
    server.program.send(number)
    assert server.program.wait(30) == 0
    assert left.running()


def test_what_never_heard_that_it_should_end_is_told_after_a_drain(programs):
    bounds = {"WEIRKEEPER_DRAIN_SECONDS": "0", "WEIRKEEPER_GRACE_SECONDS": "0"}
    left = programs.execute(["sleep", "60"], {"SUPERVISOR_PROCESS_NAME": "index"})
    server = Server(programs, bounds).until_ready()
    assert left.wait(30) == -signal.SIGTERM
    assert server.stop() == 0


def test_ctrl_c_while_the_data_folder_is_made(embedded):
    server = Server(embedded)
    made = embedded.home / "postgres"  # a link, when root starts it
    until(lambda: list(made.resolve().parent.glob("postgres.new*")), START, "initdb runs")
    os.killpg(server.program.pid, signal.SIGINT)
    assert server.program.wait(START) == 0, server.told()
    until(lambda: not embedded.living() and server.postmaster() is None, GONE, "all have ended")


@pytest.mark.parametrize("start", [("weirkeeper.server",), ("panel.cli.main", "server")])
def test_ctrl_c_at_once_is_no_traceback(programs, start):
    program = programs.start(*start, env=SLOW)
    until(lambda: imported(program.pid, b"/_socket"), 20, "it is importing")
    program.send(signal.SIGINT)
    assert program.wait(10) in (-signal.SIGINT, 130)
    assert "Traceback" not in program.text()


def imported(pid: int, library: bytes) -> bool:
    return library in Path(f"/proc/{pid}/maps").read_bytes()


SLOW = {"WEIRKEEPER_APP": "tests.support.slow_handlers:app"}
PROGRAMS = [("weirkeeper.server",), ("weirkeeper.server", "--check"), ("workers", "t"),
            ("weirkeeper.server.migrate",)]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("arguments", PROGRAMS, ids=" ".join)
def test_a_stop_while_the_application_is_imported(programs, arguments, number):
    program = programs.start(*arguments, env=SLOW)
    until(lambda: "importing" in program.text(), 20, "the application is being imported")
    program.send(number)
    assert program.wait(30) == -number
    assert program.text() == "importing\n"
