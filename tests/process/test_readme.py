"""The README as a reader follows it: the same commands in the same places, typed as they stand there.

The reader's checkout is a folder of links to ours, so that its `.weirkeeper` is the test's own. What
`script/server` and `script/weirkeeper` do before they become Python is tested in tests/packaging.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from panel.cli.main import COMMANDS
from tests.process.servers import Server
from tests.support.processes import ROOT, Program, Programs
from tests.support.waiting import until

README = (ROOT / "README.md").read_text("utf-8")
(WAITING,) = re.findall(
    r"^```python\n(.*?)^```",
    (ROOT / "docs/waiting.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
STANDS_FOR = {"server": "weirkeeper.server --local-receiver", "weirkeeper": "panel.cli.main"}
ENDED = (
    "select j.kind, array_agg(a.state) from weirkeeper.attempt a"
    " join weirkeeper.job j on j.id = a.job_id where j.queue <> 'maintenance' group by j.kind"
)

LAST = "select max(id) from weirkeeper.job where queue <> 'maintenance'"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands(title: str) -> list[str]:
    """The indented lines of a section, without their comments."""
    section = re.search(rf"^## {title}.*?(?=^## )", README, re.MULTILINE | re.DOTALL)
    assert section, title
    found = re.findall(
        r"^    (\S.*)$",
        re.sub(r"^```.*?^```", "", section[0], flags=re.MULTILINE | re.DOTALL),
        re.MULTILINE,
    )
    return [line.split("  #")[0].rstrip() for line in found]


class Reader:
    """Somebody in a shell, in a checkout.

    Args:
        programs: whose environment the shell has.
        checkout: the folder.
    """

    def __init__(self, programs: Programs, checkout: Path) -> None:
        self.programs = programs
        self.checkout = checkout
        (checkout / "script").mkdir()
        (checkout / ".venv").symlink_to(sys.prefix)
        for name, module in STANDS_FOR.items():
            script = checkout / "script" / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m {module} "$@"\n')
            script.chmod(0o700)

    def starts(self, command: str) -> Program:
        """A command that stays."""
        return self.programs.execute(["/bin/sh", "-c", f"exec {command}"], cwd=self.checkout)

    def types(self, command: str) -> str:
        """What a command prints."""
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            check=False, capture_output=True, text=True, timeout=60,
            cwd=self.checkout, env=self.programs.environment,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def reader(short_tmp):
    checkout = short_tmp / "checkout"
    (checkout / ".weirkeeper").mkdir(parents=True, mode=0o700)
    programs = Programs(checkout / ".weirkeeper", "")
    del programs.environment["DATABASE_URL"]
    yield Reader(programs, checkout)
    programs.close()


def test_an_application_from_python_sql_and_http(reader):
    (reader.checkout.parent / "shop").mkdir()
    for text in blocks("python"):
        place = re.match(r"# (\S+\.py) ", text)
        (reader.checkout / place[1]).write_text(text)

    start, create_table, buy = commands("Use it from Python")
    server = Server(reader.programs, program=reader.starts(f"env {start}")).until_ready()
    reader.types(create_table)
    told = reader.types(buy)
    result = "{'day': '2026-11-29', 'orders': 1}"
    assert re.fullmatch(
        rf"\d+ Wait\(state='completed', finished=True, result={re.escape(result)}, progress=None\)\n",
        told,
    )

    (reader.checkout / "statements.sql").write_text(blocks("sql")[0])
    told = reader.types(".weirkeeper/run/psql -At -v ON_ERROR_STOP=1 -f statements.sql")
    job_id = re.findall(r"^\d+$", told, re.MULTILINE)[0]
    (curl,) = re.findall(r"`(curl .*?)`", README)
    address = server.addresses()["listener"]
    told = reader.types(curl.replace("127.0.0.1:8711", address).replace("ID", job_id))
    assert f'"id":"{job_id}"' in told.replace(" ", "")
    assert '"orders":2' in told.replace(" ", "")

    url = server.published()["database_url"]
    exec(WAITING, found := {"url": url})
    assert found["answer"].result == {"day": "2026-11-29", "orders": 2}
    with psycopg.connect(url, autocommit=True) as conn:
        all_six = {"order.confirm": ["completed"] * 3, "report.daily": ["completed"] * 3}
        until(lambda: dict(conn.execute(ENDED).fetchall()) == all_six, 20, "six jobs completed")
        (last,) = conn.execute(LAST).fetchone()
        assert found["confirmation"] in {str(last), str(last - 1)}
    assert server.stop() == 0


def test_under_a_supervisord_of_ones_own(reader, empty_database_url):
    export, createdb, *prepare, supervisord = commands("Run it")
    # The database is made, by the fixture, and the home is the test's.
    assert re.fullmatch(r"export WEIRKEEPER_HOME=\S+ DATABASE_URL=postgresql://\S+", export)
    assert createdb.startswith("createdb ")
    reader.programs.environment["DATABASE_URL"] = empty_database_url
    for command in prepare:
        reader.types(command)
    with psycopg.connect(empty_database_url) as conn:
        assert conn.execute("select count(*) from weirkeeper.queue").fetchone() == (5,)

    (reader.checkout / "supervisord.conf").symlink_to(ROOT / "supervisord.conf")
    program = reader.starts(supervisord)
    ready = "select count(*) from weirkeeper.process where phase = 'ready'"
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        until(lambda: conn.execute(ready).fetchone() == (8,), 60, "all eight programs are ready")
    assert program.terminate(45) == 0


def test_commands_exist():
    for name in re.findall(r"^    (script/\w+)", README, re.MULTILINE):
        assert os.access(ROOT / name, os.X_OK), name
    named = set(re.findall(r"\bscript/weirkeeper (\w+)", README))
    assert {"demo", "check", "migrate"} <= named <= set(COMMANDS)


def test_it_is_short():
    assert README.count("\n") < 145
