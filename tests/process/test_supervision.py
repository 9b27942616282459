"""Asking a real supervisord: states, groups that stop together, a password, one that is gone."""

from __future__ import annotations

import sys

import pytest

from shared.services.supervision import Supervision, SupervisordAway, SupervisordRefused
from tests.support.waiting import until

CONFIGURATION = """
[supervisord]
nodaemon=true
logfile=/dev/null
logfile_maxbytes=0
pidfile={run}/supervisord.pid
[unix_http_server]
file={socket}
chmod=0700
{secret}
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl=unix://{socket}
{secret}
[group:pair]
programs=one,two
[program:one]
command=sleep 600
startsecs=0
[program:two]
command=sleep 600
startsecs=0
[group:broken]
programs=never
[program:never]
command=false
startsecs=1
startretries=0
"""
SECRET = "username=us\npassword=a-b"


@pytest.fixture
def start(programs):
    run = programs.home / "run"
    run.mkdir()

    def begin(socket="supervisor.sock", secret="", name="supervisord.conf"):
        file = run / name
        file.write_text(CONFIGURATION.format(run=run, socket=str(run / socket), secret=secret))
        command = [sys.executable, "-P", "-m", "supervisor.supervisord", "-c", str(file)]
        return programs.execute(command)

    return begin


def states(supervision):
    try:
        return {p.name: (p.group, p.state) for p in supervision.programs()}
    except SupervisordAway:
        return {}


@pytest.mark.parametrize(
    "where",
    [
        {},  # plain, as supervisord.conf ships: HOME/run/supervisor.sock without a password
        {"name": "plain.conf"},  # … and nothing written by a server
        {"socket": "s.sock", "secret": SECRET},  # a server's own
    ],
    ids=["written", "plain", "secret"],
)
def test_states_and_groups(programs, start, where):
    program = start(**where)
    supervision = Supervision(programs.home)
    both = {"one": ("pair", "RUNNING"), "two": ("pair", "RUNNING")}
    until(lambda: both.items() <= states(supervision).items(), 30, "both run")
    until(lambda: states(supervision)["never"] == ("broken", "FATAL"), 30, "one is given up")
    assert all(p.pid > 0 for p in supervision.programs() if p.state == "RUNNING")
    supervision.stop_group("pair", 30)
    assert {states(supervision)[name] for name in ("one", "two")} == {("pair", "STOPPED")}
    supervision.start_group("pair", 30)
    assert both.items() <= states(supervision).items()
    with pytest.raises(SupervisordRefused, match="BAD_NAME"):
        supervision.stop_group("nobody", 30)
    assert program.terminate() == 0
    with pytest.raises(SupervisordAway, match="no supervisord runs in"):
        supervision.programs()


def test_a_server_that_left_its_file_behind_does_not_hide_a_plain_one(programs, start):
    (programs.home / "run" / "supervisord.conf").write_text(
        "[supervisorctl]\nserverurl=unix:///nowhere/s.sock\nusername=x\npassword=y\n"
    )
    program = start(name="plain.conf")
    until(lambda: "one" in states(Supervision(programs.home)), 30, "it answers")
    assert program.terminate() == 0


def test_a_password_that_is_not_known_is_told(programs, start):
    program = start(name="plain.conf", secret=SECRET)
    supervision = Supervision(programs.home)

    def refused():
        try:
            supervision.programs()
        except SupervisordRefused as error:
            return str(error)
        except SupervisordAway:
            return ""
        return "let in"

    assert "401" in until(refused, 30, "it answers")
    assert program.terminate() == 0
