"""Wrong settings: each one clear line, exit code 78, nothing started, no secret told."""

from __future__ import annotations

import json
import os
import socket
import sys
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.process.servers import can_nobody_run_python
from tests.support.databases import with_database
from tests.support.processes import ROOT, Programs
from tests.support.waiting import until
from weirkeeper.server.account import Account
from weirkeeper.server.folders import postgres_base, prepare_home

GONE = {
    "postgresql://somebody:hunter2@127.0.0.1:1/none": "somebody:***@127.0.0.1:1/none",
    "postgresql://127.0.0.1:1/x?password=hunter2": "127.0.0.1:1/x?password=***",
    "postgresql://127.0.0.1:1/x?sslpassword=hunter2": "x?sslpassword=***",
}
TABLE = {
    "no such setting": ({"WEIRKEEPER_DRIAN_SECONDS": "9"}, "WEIRKEEPER_DRIAN_SECONDS: expected"),
    "a port that is no number": ({"WEIRKEEPER_LISTENER_PORT": "http"}, "WEIRKEEPER_LISTENER_PORT"),
    "a port out of range": ({"WEIRKEEPER_METRICS_PORT": "70000"}, "from 0 to 65535; got '70000'"),
    "a log level": ({"WEIRKEEPER_LOG_LEVEL": "loud"}, "one of debug, info, warning, error"),
    "a drain": ({"WEIRKEEPER_DRAIN_SECONDS": "soon"}, "a number of seconds"),
    "children": ({"WEIRKEEPER_CHILDREN": "index:4"}, "index=4,notify=2"),
    "children of no queue": ({"WEIRKEEPER_CHILDREN": "indx=4"}, "got 'indx'"),
    "a budget that does not fit": ({"WEIRKEEPER_CHILDREN": "index=500"}, "500 children"),
    "an application that is not there": ({"WEIRKEEPER_APP": "no.such:app"}, "ModuleNotFoundError"),
    "an application without attribute": ({"WEIRKEEPER_APP": "json"}, '"module:attribute"'),
    "an application of another kind": ({"WEIRKEEPER_APP": "json:dumps"}, "a weirkeeper.App"),
    "a database URL": ({"DATABASE_URL": "mysql://u:hunter2@h/d"}, "begins with postgresql://"),
    "an address of nobody": ({"WEIRKEEPER_HOST": "203.0.113.9"}, "a loopback address"),
    "every address": ({"WEIRKEEPER_HOST": ".".join("0000")}, "a loopback address"),
    "a name that nobody has": ({"WEIRKEEPER_HOST": "nohost.invalid"}, "a loopback address"),
    "one port twice": (
        {"WEIRKEEPER_METRICS_PORT": "8712", "WEIRKEEPER_LISTENER_PORT": "8712"},
        "WEIRKEEPER_METRICS_PORT: expected a port that no other",
    ),
    "a password with a slash": (
        {"DATABASE_URL": "postgres://u:hunter2/hunter2@127.0.0.1:1/x"},
        "percent-encode",
    ),
    "a connection string": (
        {"DATABASE_URL": "host=127.0.0.1 password=hunter2 port=1"},
        "got 'a value without postgresql://",
    ),
    "a database in other bytes": (
        {"DATABASE_URL": os.fsdecode(b"postgresql://u:hunter2\xff@127.0.0.1:1/x")},
        "DATABASE_URL: expected text in UTF-8",
    ),
    "a home in other bytes": (
        {"WEIRKEEPER_HOME": os.fsdecode(b"/tmp/\xff")},
        "WEIRKEEPER_HOME: expected text in UTF-8",
    ),
    "a home too long": ({"WEIRKEEPER_HOME": "/tmp/" + "x" * 300}, "(File name too long)"),
    "a home that is a device": ({"WEIRKEEPER_HOME": "/dev/null"}, "WEIRKEEPER_HOME: expected"),
    "an application that exits": (
        {"WEIRKEEPER_APP": "tests.support.exits:app"},
        "(SystemExit: 3)",
    ),
    "a home with a sign": ({"WEIRKEEPER_HOME": "/tmp/h;x"}, "a path without % ; #"),
    "no binaries": ({"WEIRKEEPER_PGBIN": "/nowhere"}, "WEIRKEEPER_PGBIN: expected a folder"),
    "a home that cannot be": ({"WEIRKEEPER_HOME": "/proc/x"}, "WEIRKEEPER_HOME"),
}


@pytest.fixture
def embedded(short_tmp):
    programs = Programs(short_tmp, "")
    yield programs
    programs.close()


def refused(programs, env, told, *arguments):
    program = programs.start("weirkeeper.server", *arguments, env=env)
    assert program.wait(30) == 78, program.text()
    lines = program.text().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("weirkeeper server: ")
    assert told in lines[0]
    assert "hunter2" not in lines[0]
    assert not programs.living()


@pytest.mark.parametrize(("env", "told"), TABLE.values(), ids=TABLE)
def test_a_wrong_setting_is_one_clear_line(embedded, env, told):
    refused(embedded, env, told)


@pytest.mark.parametrize(("env", "told"), TABLE.values(), ids=TABLE)
def test_a_check_refuses_what_a_start_refuses(embedded, env, told):
    if env.get("WEIRKEEPER_HOME", "").startswith("/proc"):
        pytest.skip("root may write there; only trying tells, and a check makes nothing")
    refused(embedded, env, told, "--check")


@pytest.mark.parametrize("arguments", [(), ("--check",)])
@pytest.mark.parametrize("name", ["LISTENER", "METRICS", "POSTGRES"])
def test_a_taken_port_is_named(embedded, name, arguments):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        told = f"WEIRKEEPER_{name}_PORT: expected"
        refused(embedded, {f"WEIRKEEPER_{name}_PORT": port}, told, *arguments)
    assert not (embedded.home / "postgres" / "PG_VERSION").exists()  # before initdb


def test_a_home_that_may_not_be_looked_at(embedded):
    if not can_nobody_run_python():
        pytest.skip("only root becomes nobody, who cannot enter Python's folder here")
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable]
    for arguments in ((), ("--check",)):
        program = embedded.execute(
            [*command, "-P", "-m", "weirkeeper.server", *arguments], {"WEIRKEEPER_HOME": "/root/x"}
        )
        assert program.wait(30) == 78, program.text()
        (line,) = program.text().splitlines()
        assert "WEIRKEEPER_HOME: expected a folder" in line


def test_a_database_of_another_encoding(programs, database_url):
    name = f"{urlsplit(database_url).path[1:]}_ascii"
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            f"create database {name} template template0 encoding 'SQL_ASCII' "
            "lc_collate 'C' lc_ctype 'C'"
        )
    try:
        env = {"DATABASE_URL": with_database(database_url, name)}
        refused(programs, env, "a database with the encoding UTF8; got 'SQL_ASCII'")
    finally:
        with psycopg.connect(database_url, autocommit=True) as conn:
            conn.execute(f"drop database {name}")


def test_a_database_that_does_not_exist(programs, database_url):
    refused(
        programs, {"DATABASE_URL": with_database(database_url, "nowhere")}, '"nowhere" does not'
    )


def test_a_wrong_password(programs, database_url):
    parts = urlsplit(database_url)
    if not parts.password:
        pytest.skip("this server asks for no password")
    url = parts._replace(netloc=f"{parts.username}:hunter2@{parts.hostname}:{parts.port}").geturl()
    refused(programs, {"DATABASE_URL": url}, "password authentication failed")


def test_a_role_that_may_not_create_a_schema(programs, empty_database_url):
    parts = urlsplit(empty_database_url)
    role = f"{parts.path[1:]}_weak"
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        conn.execute(f"create role {role} login password 'hunter2'")
    try:
        place = f"{role}:hunter2@{parts.hostname}:{parts.port}"
        env = {"DATABASE_URL": parts._replace(netloc=place).geturl()}
        migrate = programs.start("weirkeeper.server.migrate", env=env)
        assert migrate.wait(30) == 78, migrate.text()
        (line,) = migrate.text().splitlines()
        assert line.startswith("weirkeeper migrate: DATABASE_URL: expected a role that may create")
        assert f"{role}:***@" in line
        assert "permission denied for database" in line
        server = programs.start("weirkeeper.server", env=env)
        assert server.wait(60) == 78, server.text()
        assert "DATABASE_URL: expected a role that may create" in server.text()
        assert "hunter2" not in server.text()
    finally:
        with psycopg.connect(empty_database_url, autocommit=True) as conn:
            conn.execute(f"drop owned by {role}; drop role {role}")


def test_data_of_another_version(embedded, short_tmp):
    data = short_tmp / "postgres"
    if os.geteuid() == 0:
        data = postgres_base(prepare_home(short_tmp), Account.choose("nobody")) / "postgres"
    data.mkdir()
    (data / "PG_VERSION").write_text("17\n")
    (short_tmp / "postgres.password").write_text("x")
    refused(embedded, {}, "of version 17")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root chooses who runs Postgres")
@pytest.mark.parametrize("user", ["root", "no-such-user"])
def test_a_user_that_cannot_run_postgres(embedded, user):
    refused(embedded, {"WEIRKEEPER_POSTGRES_USER": user}, "WEIRKEEPER_POSTGRES_USER: expected")


def test_check_starts_nothing_and_tells_all(programs):
    program = programs.start("weirkeeper.server", "--check")
    assert program.wait(30) == 0
    assert '"connection_budget": "index (3 + 4 children) 7' in program.text()
    assert "***" in program.text()


CHECK = [sys.executable, "-P", "-m", "panel.cli.main", "check"]
OWN_QUEUE = {"WEIRKEEPER_APP": "tests.support.app:app", "WEIRKEEPER_DRAIN_SECONDS": "21"}


def test_a_check_passes_what_the_server_adds_by_itself_and_tells_it(programs):
    program = programs.execute(CHECK, OWN_QUEUE)
    assert program.wait(30) == 0, program.text()
    told = [line for line in program.text().splitlines() if line.startswith("weirkeeper check: ")]
    assert told[0].startswith(
        "weirkeeper check: for plain supervisord, queue t needs a [program:t]"
    )
    assert any("program:index needs stopwaitsecs=31" in line for line in told)
    assert all(line.endswith("`weirkeeper server` does so by itself") for line in told)
    assert not (programs.home / "run").exists()


def test_a_check_for_plain_supervisord_refuses_it(programs):
    program = programs.execute([*CHECK, "--supervisord"], OWN_QUEUE)
    assert program.wait(30) == 78
    (line,) = program.text().splitlines()
    assert line.startswith("weirkeeper check: supervisord.conf, queue t: expected a program")
    assert "`weirkeeper server` adds it by itself" in line


def test_a_check_for_plain_supervisord_makes_its_folders(programs):
    program = programs.execute([*CHECK, "--supervisord"])
    assert program.wait(30) == 0, program.text()
    assert (programs.home / "run").is_dir()
    assert (programs.home / "log").is_dir()


@pytest.mark.parametrize(("url", "told"), GONE.items(), ids=["user", "password", "sslpassword"])
def test_a_database_that_is_away_refuses_nothing_and_is_told(programs, url, told):
    program = programs.execute([*CHECK, "--supervisord"], {"DATABASE_URL": url})
    assert program.wait(60) == 0, program.text()
    [line] = [row for row in program.text().splitlines() if row.startswith("weirkeeper check: ")]
    assert f"{told} does not answer: " in line
    assert "budget and schema are unchecked" in line
    assert "hunter2" not in program.text()


@pytest.mark.slow
def test_a_server_waits_for_a_database_that_is_away(programs):
    url = next(iter(GONE))
    program = programs.start("weirkeeper.server", env={"DATABASE_URL": url})
    until(lambda: "does not answer: " in program.text(), 30, "it says so")
    until(lambda: "waiting for the database: " in program.text(), 60, "it says what it waits for")
    assert program.terminate(60) == 0, program.text()
    assert "hunter2" not in program.text()


def test_a_check_tells_programs_what_it_tells_people(programs):
    program = programs.execute([*CHECK, "--json"], OWN_QUEUE)
    assert program.wait(60) == 0, program.text()
    told = json.loads(program.text())
    assert told["ok"]
    assert "t (3 + 4 children) 7 + " in told["settings"]["connection_budget"]
    assert any("queue t needs a [program:t]" in note for note in told["notes"])
    program = programs.execute([*CHECK, "--json", "--supervisord"], OWN_QUEUE)
    assert program.wait(60) == 78
    told = json.loads(program.text())
    assert not told["ok"]
    assert "queue t: expected a program" in told["problem"]


def test_handlers_are_imported(programs):
    program = programs.execute(CHECK, {"WEIRKEEPER_APP": "tests.support.bad_apps:no_module"})
    assert program.wait(60) == 78
    (line,) = program.text().splitlines()
    assert line.startswith("weirkeeper check: queue ")
    assert "nowhere" in line


def test_another_supervisord_conf_and_its_processes_are_counted(programs):
    file = programs.home / "mine.conf"
    shipped = (ROOT / "supervisord.conf").read_text()
    index = shipped[shipped.index("[program:index]") : shipped.index("[program:notify]")]
    spread = index.replace("workers index", "workers index --slot index-%%(process_num)s")
    spread = spread.replace("%%(process_num)s", "%(process_num)s")
    head = "[program:index]\nnumprocs=%(ENV_INDEX_PROCESSES)s\n"
    spread = spread.replace("[program:index]\n", f"{head}process_name=index-%(process_num)s\n")
    file.write_text(shipped.replace(index, spread))
    arguments = [*CHECK, "--supervisord", str(file)]
    program = programs.execute(arguments, {"INDEX_PROCESSES": "3"})
    assert program.wait(60) == 0, program.text()
    assert '"connection_budget": "3 x index (3 + 4 children) 21 + ' in program.text()
    program = programs.execute(arguments, {"INDEX_PROCESSES": "30"})
    assert program.wait(60) == 78
    assert "30 x index (3 + 4 children) 210 + " in program.text()
    program = programs.execute(arguments)
    assert program.wait(60) == 78
    assert "program:index numprocs: expected a whole number" in program.text()
    program = programs.execute([*CHECK, "--supervisord", "/nowhere/x.conf"])
    assert program.wait(60) == 78
    assert "--supervisord: expected a file; got '/nowhere/x.conf'" in program.text()


def test_a_check_beside_the_running_server_does_not_mind_its_ports(programs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        ports = {"WEIRKEEPER_LISTENER_PORT": str(taken.getsockname()[1])}
    listener = programs.start("listener", env={**ports, "SUPERVISOR_PROCESS_NAME": "listener"})
    until(lambda: "answers on" in listener.text(), 20, "the listener has its port")
    program = programs.execute(CHECK, ports)
    assert program.wait(30) == 0, program.text()
    assert listener.terminate() == 0
