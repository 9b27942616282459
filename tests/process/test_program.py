"""How every program begins and ends, as a real process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.support.waiting import until

PROGRAM = """
import argparse, sys, threading
from shared.errors import ConfigurationError
from shared.services.program import run

def check(settings, args):
    if args.mode == "refuse":
        raise ConfigurationError.of("thing", "a", "b", "mend it")
    return {"found": "checked"}

def body(settings, args, stop):
    print("running", flush=True)
    if args.mode == "dies":
        stop.fail(KeyError("loop"))
    stop.wait(60)
    return 0

parser = argparse.ArgumentParser("planted")
parser.add_argument("mode")
sys.exit(run(parser, None, body, check))
"""


SUPERVISOR = """
import subprocess, sys
p = subprocess.Popen([sys.executable, "-c", sys.argv[1], "run"], stdout=subprocess.PIPE, text=True)
p.stdout.readline()
print(p.pid, flush=True)
p.wait()
"""


@pytest.fixture
def planted(tmp_path):
    """Start the program; everything is ended afterwards."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *arguments],
                cwd=ROOT,
                env={"WEIRKEEPER_HOME": str(tmp_path), **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(planted, number):
    process = planted("run")
    assert process.stdout.readline() == "running\n"
    process.send_signal(number)
    assert process.wait(10) == 0


def test_a_signal_while_it_starts_ends_it_too(planted):
    process = planted("run")
    until(lambda: _catches(process.pid, signal.SIGTERM), 10, "it takes the signal")
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def _catches(pid: int, number: signal.Signals) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def test_a_dead_loop_is_exit_code_1(planted):
    process = planted("dies")
    _, log = process.communicate(timeout=10)
    assert process.returncode == 1
    assert json.loads(log.splitlines()[-1])["message"] == (
        "stopped by the failure of a loop: 'loop'"
    )


def test_what_a_person_must_mend_is_one_line_and_exit_code_78(planted):
    process = planted("refuse")
    out, log = process.communicate(timeout=10)
    assert (process.returncode, out) == (78, "")
    assert log == "planted: thing: expected a; got 'b'; mend it\n"


def test_a_bad_setting_is_one_line_and_exit_code_78(planted):
    process = planted("run", WEIRKEEPER_LISTENER_PORT="http")
    out, log = process.communicate(timeout=10)
    assert (process.returncode, out) == (78, "")
    assert log.startswith("planted: WEIRKEEPER_LISTENER_PORT: expected a whole number")
    assert log.count("\n") == 1


def test_check_prints_the_settings_and_ends(planted, tmp_path):
    process = planted("run", "--check", DATABASE_URL="postgresql://me:secret@db/app")
    out, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    shown = json.loads(out)
    assert (shown["found"], shown["home"]) == ("checked", str(tmp_path))
    assert shown["database_url"] == "postgresql://me:***@db/app"


def test_it_dies_with_its_supervisor(tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, PROGRAM],
        cwd=ROOT,
        env={"WEIRKEEPER_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate(timeout=10)
    until(lambda: not _alive(child), 10, "the program is gone")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
