"""script/environment on machines that lack something, with tools of our own making in PATH.

No network: `python3` here is a shell script that plays Python, venv and pip, and writes down what
it was asked to do.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from weirkeeper.identity import ROOT

TOOLS = (
    "sh",
    "cat",
    "cksum",
    "mkdir",
    "dirname",
    "basename",
    "uname",
    "flock",
    "rm",
    "date",
    "chmod",
    "tr",
)
PYTHON = """#!/bin/sh
echo "$0 $*" >>"$LOG"
case "$*" in
    *version_info*) exit {old} ;;
    "-m pip --version") exit {no_pip} ;;
    *"-m venv"*) mkdir -p "$VENV/bin"; cat "$0" >"$VENV/bin/python"; chmod +x "$VENV/bin/python" ;;
    *"import encodings"*) ;;
    *"-m pip"*install*)
        if test -s "$FAIL"; then kill -INT "$PPID"; exit 130; fi
        if test -e "$FAIL"; then echo 'no route to host' >&2; exit 1; fi ;;
    *) echo "became: $*" ;;
esac
"""


class Machine:
    """A checkout, and a PATH with little on it."""

    def __init__(self, place: Path) -> None:
        self.checkout = place / "checkout"
        (self.checkout / "script").mkdir(parents=True)
        for file in ("pyproject.toml", *(f"script/{f.name}" for f in (ROOT / "script").iterdir())):
            if (ROOT / file).is_file():
                shutil.copy(ROOT / file, self.checkout / file)
        self.path = place / "bin"
        self.path.mkdir()
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool) or tool)
        self.log, self.fail = place / "log", place / "fail"
        self.log.touch()

    def tool(self, name: str, text: str) -> None:
        """Put a program on PATH."""
        (self.path / name).unlink(missing_ok=True)
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def python(self, old: int = 0, no_pip: int = 0) -> None:
        """Put a Python on PATH."""
        self.tool("python3", PYTHON.format(old=old, no_pip=no_pip))

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of the scripts."""
        return subprocess.run(
            [self.checkout / "script" / script, *arguments],
            check=False,
            cwd="/",
            env={
                "PATH": str(self.path),
                "LOG": str(self.log),
                "FAIL": str(self.fail),
                "VENV": str(self.checkout / ".venv"),
            },
            capture_output=True,
            text=True,
            timeout=30,
            # Tests that run in the background of a shell were started with it ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def asked(self) -> str:
        """What Python was asked to do since the last call."""
        told = self.log.read_text()
        self.log.write_text("")
        return told


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def refused(done, told):
    assert done.returncode == 78
    assert told in done.stderr
    assert done.stderr.startswith("script/server: expected")


@pytest.mark.parametrize("setup", [lambda m: None, lambda m: m.python(old=1)], ids=["none", "old"])
def test_no_python_that_is_new_enough(machine, setup):
    setup(machine)
    refused(machine.run("server"), "a Python of 3.11 or newer")


def test_python_without_pip(machine):
    machine.python(no_pip=1)
    refused(machine.run("server"), "expected pip for")


def test_a_system_that_is_not_linux(machine):
    machine.python()
    machine.tool("uname", "#!/bin/sh\necho Darwin\n")
    refused(machine.run("server"), "expected Linux; got Darwin")


def test_made_once_then_instant(machine):
    machine.python()
    first = machine.run("server", "--check")
    assert first.returncode == 0, first.stderr
    assert "became: -P -m weirkeeper.server --local-receiver --began" in first.stdout
    assert first.stdout.rstrip().endswith("--check")
    asked = machine.asked()
    assert "--require-hashes -r" in asked
    assert "requirements-run.txt" in asked

    machine.run("server")
    assert "pip" not in machine.asked()


def test_an_interruption_says_what_to_do_next(machine):
    machine.python()
    machine.fail.write_text("Ctrl-C")
    done = machine.run("server")
    assert done.returncode == 130, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == "script/server: interrupted; start again, it continues where it stopped"
    machine.fail.unlink()
    assert machine.run("server").returncode == 0


def test_taken_up_again_after_an_interruption(machine):
    machine.python()
    machine.fail.touch()
    done = machine.run("server")
    assert done.returncode == 78
    assert "no route to host" in done.stderr
    assert "the packages of requirements-run.txt to install" in done.stderr
    assert not (machine.checkout / ".venv" / "stamp-run").exists()

    machine.fail.unlink()
    assert machine.run("server").returncode == 0
    assert (machine.checkout / ".venv" / "stamp-run").exists()


@pytest.mark.parametrize("change", ["pyproject.toml", "script/requirements-run.txt"])
def test_made_again_when_what_it_is_made_from_changes(machine, change):
    machine.python()
    machine.run("server")
    machine.asked()
    with (machine.checkout / change).open("a") as file:
        file.write("# another\n")
    machine.run("server")
    assert "--require-hashes -r" in machine.asked()


def test_made_again_when_the_checkout_moved(machine):
    machine.python()
    machine.run("server")
    machine.asked()
    machine.checkout = machine.checkout.rename(machine.checkout.with_name("moved"))
    machine.run("server")
    assert "--require-hashes -r" in machine.asked()


def test_what_is_enough_for_tests_is_enough_for_the_server(machine):
    machine.python()
    machine.run("test")
    assert "requirements-test.txt" in machine.asked()
    machine.run("server")
    assert "pip" not in machine.asked()


def test_the_command_line_runs_where_it_was_called(machine):
    machine.python()
    done = machine.run("weirkeeper", "demo", "--notes", "here")
    assert "became: -P -m panel.cli.main demo --notes here" in done.stdout


def test_every_script_can_be_executed():
    scripts = [ROOT / ".ci" / name for name in ("run", "fresh-clone")]
    scripts += [
        ROOT / "script" / name for name in ("server", "test", "bench", "weirkeeper", "lock")
    ]
    assert [script.name for script in scripts if not os.access(script, os.X_OK)] == []
    for script in scripts:
        subprocess.run(["/bin/sh", "-n", script], check=True, timeout=10)
