"""The command line as a real process: table, laziness, exit codes, becoming a program."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from panel.cli.main import COMMANDS, overview
from shared.services.process import identity
from tests.support.databases import with_database
from tests.support.rows import address_when_ready, session
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
CLI = [sys.executable, "-P", "-m", "panel.cli.main"]
NAMES = [
    "server",
    "worker",
    "relay",
    "listener",
    "metrics",
    "migrate",
    "check",
    "version",
    "status",
    "health",
    "drain",
    "drains",
    "events",
    "jobs",
    "verify",
    "pause",
    "resume",
    "corpus",
    "webhooks",
    "demo",
]


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLI, *arguments],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("word", [os.fsdecode(b"\xff")])
@pytest.mark.parametrize("arguments", [(), ("jobs", "list", "--kind"), ("worker",)])
def test_arguments_in_other_bytes_are_one_line(arguments, word):
    done = run(*arguments, word)
    assert done.returncode == 2
    assert done.stderr == "weirkeeper: expected arguments in UTF-8; got '\\udcff'; correct it\n"


def test_the_table_names_every_command():
    assert sorted(COMMANDS) == sorted(NAMES)


@pytest.mark.parametrize("name", [n for n in NAMES if not COMMANDS[n].program])
def test_every_command_keeps_the_contract(name):
    module = import_module(f"panel.cli.commands.{name}")
    assert module.HELP
    assert callable(module.add_arguments)
    assert callable(module.run)
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: weirkeeper {name}")


@pytest.mark.parametrize("flag", ["-h", "--help", "help"])
def test_help(flag):
    done = run(flag)
    assert (done.returncode, done.stdout.strip()) == (0, overview())
    assert all(f"\n  {name} " in done.stdout for name in NAMES)
    assert max(map(len, done.stdout.splitlines())) <= 79


def test_help_imports_nothing_of_ours_but_the_table():
    code = (
        "import sys; from panel.cli.main import main; main(['--help']);"
        "print(*sorted(m for m in sys.modules if m.split('.')[0] in"
        " ('shared', 'weirkeeper', 'psycopg', 'argparse')), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr.strip() == ""


def test_help_is_there_before_the_database_driver_alone_is_imported():
    def seconds(command: list[str]) -> float:
        begun = time.perf_counter()
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, timeout=30, check=True)
        return time.perf_counter() - begun

    driver = [sys.executable, "-c", "import psycopg, prometheus_client"]
    pairs = [(seconds([*CLI, "--help"]), seconds(driver)) for _ in range(9)]
    assert statistics.median(ours / theirs for ours, theirs in pairs) < 0.8


def test_mistakes_are_told_with_a_hint():
    done = run("serve")
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "weirkeeper: expected a command; got 'serve'; did you mean `weirkeeper server`?"
    )
    assert "weirkeeper --help lists them" in run("xyzzy").stderr
    bare = run()
    assert (bare.returncode, bare.stderr.strip()) == (2, overview())


def test_version_answers_without_a_database(tmp_path):
    done = run("version", env={"WEIRKEEPER_HOME": str(tmp_path), "DATABASE_URL": ""})
    assert done.returncode == 0
    assert done.stdout.startswith("weirkeeper 0.1.0\npython ")
    assert "no database: start one with `script/weirkeeper server`" in done.stdout
    assert run("--version", env={"DATABASE_URL": ""}).stdout.startswith("weirkeeper 0.1.0\n")


def test_version_tells_the_schema(database_url, empty_database_url):
    found = run("version", env={"DATABASE_URL": database_url}).stdout
    assert "in the database (Postgres " in found
    found = run("version", env={"DATABASE_URL": empty_database_url}).stdout
    assert "none: run `script/weirkeeper migrate` in the database" in found
    away = run("version", env={"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"})
    assert away.returncode == 0
    assert "the database does not answer" in away.stdout


def test_a_setting_that_cannot_work_is_one_line_and_78():
    done = run("status", env={"DATABASE_URL": "mysql://x"})
    assert done.returncode == 78
    assert done.stderr.startswith("weirkeeper status: DATABASE_URL: expected a URL")
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_reader_that_goes_away_is_no_error():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        done = subprocess.run(
            [*CLI, "version"],
            cwd=ROOT,
            stdout=gone,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "DATABASE_URL": ""},
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", ["worker", "relay", "listener", "metrics"])
def test_a_program_takes_the_place_of_the_command(command):
    done = run(command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: weirkeeper {command} ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("jobs", "lst"), "got 'lst'; did you mean 'list'?"),
        (("jobs", "list", "--state", "runing"), "got 'runing'; did you mean 'running'?"),
        (("corpus", "serach", "x"), "got 'serach'; did you mean 'search'?"),
        (("jobs", "list", "--state", "xyzzy"), "got 'xyzzy'\n"),
        (
            ("corpus", "search", "x", "--limit", "1_0"),
            "a whole number in decimal digits; got '1_0'",
        ),
        (("corpus", "search", "x", "--limit", "٣"), "a whole number in decimal digits; got '٣'"),
    ],
)
def test_a_wrong_word_is_told_with_the_nearest_right_one(arguments, told):
    done = run(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert "expected " in done.stderr


@pytest.mark.parametrize("arguments", [("jobs", "list"), ("corpus", "search", "x"), ("migrate",)])
def test_without_a_server_every_command_says_the_same(arguments, tmp_path):
    done = run(*arguments, env={"WEIRKEEPER_HOME": str(tmp_path), "DATABASE_URL": ""})
    assert done.returncode == 78
    said = (
        f"weirkeeper {arguments[0]}: no server runs here: expected one in {tmp_path}, or DATABASE"
    )
    assert done.stderr.startswith(said)


def test_a_database_that_does_not_exist_is_to_be_created(database_url):
    done = run("jobs", "list", env={"DATABASE_URL": with_database(database_url, "nowhere")})
    assert done.returncode == 1
    assert "create the database (createdb NAME)" in done.stderr


def test_the_program_is_not_the_console_script(programs, database_url):
    program = programs.execute([*CLI, "listener", "--slot", "listener-2"])
    address_when_ready(database_url, "listener")
    command = Path(f"/proc/{program.pid}/cmdline").read_text().split("\0")
    assert command[1:-1] == ["-P", "-m", "listener", "--slot", "listener-2"]
    assert program.terminate(10) == 0


def test_status_waits_until_all_are_ready(programs, database_url):
    def status(*arguments: str) -> tuple[int, dict]:
        done = run("status", "--json", *arguments, env=programs.environment)
        return done.returncode, json.loads(done.stdout)

    code, found = status()
    assert code == 1
    assert {p["phase"] for p in found["processes"]} == {"missing"}
    with session(database_url) as conn:
        # The queues and the relay as rows that never beat again but belong to this process.
        me = identity()
        conn.execute(
            "insert into weirkeeper.process (role, slot, host, boot_id, pid_namespace, pid,"
            " pid_started, version, phase, connections, beat_at)"
            " select role, slot, %s, %s, %s, %s, %s, '0', 'ready', 3, now() + interval '1 h'"
            " from unnest(%s::text[], %s::text[]) as t (role, slot)",
            [
                me.host,
                me.boot_id,
                me.pid_namespace,
                me.pid,
                me.pid_started,
                [p["role"] for p in found["processes"]][:-2],
                [p["slot"] for p in found["processes"]][:-2],
            ],
        )
    waiter = programs.execute([*CLI, "status", "--wait", "30"])
    listener, metrics = programs.start("listener"), programs.start("metrics")
    assert waiter.wait(30) == 0
    assert "processes are ready" in waiter.text()
    assert "127.0.0.1:" in waiter.text()
    metrics.popen.kill()
    metrics.wait(30)
    code, found = status()
    assert (code, found["told"].rpartition("; ")[2]) == (1, "not: metrics (gone)")
    assert listener.terminate(10) == 0
    until(lambda: "listener (stopped)" in status()[1]["told"], 10, "the end is told")


def test_status_without_a_server_says_what_to_do(tmp_path):
    done = run("status", env={"WEIRKEEPER_HOME": str(tmp_path), "DATABASE_URL": ""})
    assert done.returncode == 1
    assert f"no server runs here: expected one in {tmp_path}" in done.stdout
    away = run("status", env={"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"})
    assert (away.returncode, away.stdout.partition(":")[0]) == (1, "the database does not answer")
    assert run("status", "--wait", "soon").returncode == 2
