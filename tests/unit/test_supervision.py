"""supervisord.conf: what ships passes the lint, each mistake is refused, a start completes it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from shared.config.queues import QUEUES
from shared.config.settings import Settings
from shared.errors import ConfigurationError
from tests.support.processes import ROOT
from weirkeeper.server import compose
from weirkeeper.server.lint import lint
from workers import drain, queue_process

QUEUE_NAMES = [queue.name for queue in QUEUES]
CONTROL = compose.Control(Path("/tmp/x/supervisor.sock"), "secret")


def settings(home, **environ):
    return Settings.load({"WEIRKEEPER_HOME": str(home), **environ})


@pytest.fixture
def shipped(tmp_path):
    return compose.read(tmp_path)


def test_what_ships_is_right(shipped, tmp_path):
    lint(shipped, settings(tmp_path), QUEUE_NAMES)


MISTAKES = {
    "no drain for a queue": ("program:index", "stopwaitsecs", "29", "more than drain"),
    "kills the jobs it waits for": ("program:index", "stopasgroup", "true", "stopasgroup"),
    "leaves jobs of a stuck parent": ("program:fetch", "killasgroup", "false", "killasgroup"),
    "FATAL after three kills": ("program:relay", "startretries", "2", "startretries"),
    "restarts a mistake for ever": ("program:relay", "exitcodes", "0", "exitcodes"),
    "no drain at all": ("program:metrics", "stopsignal", "KILL", "stopsignal"),
    "errors lost": ("program:listener", "redirect_stderr", "false", "redirect_stderr"),
    "relay not first": ("group:relay", "priority", "400", "relay above queues"),
    "metrics not last": ("group:metrics", "priority", "201", "listener above metrics"),
    "a group of nobody": ("group:listener", "programs", "listener,ghost", "ghost"),
    "starts again what has ended in order": ("program:index", "autorestart", "true", "autorestart"),
    "a socket for everybody": ("unix_http_server", "chmod", "0777", "0700"),
    "two processes with one slot": ("program:index", "numprocs", "2", "a slot for each process"),
    "a number of processes that is none": ("program:index", "numprocs", "%(ENV_NO)s", "numprocs"),
    "a port for everybody": ("inet_http_server", "port", "9001", "inet_http_server"),
}


@pytest.mark.parametrize(("section", "option", "value", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused(shipped, tmp_path, section, option, value, told):
    if not shipped.has_section(section):
        shipped.add_section(section)
    shipped[section][option] = value
    # The shipped 30 s fit a drain of 20; the first case makes the drain longer than that.
    long = {"WEIRKEEPER_DRAIN_SECONDS": "22"} if option == "stopwaitsecs" else {}
    with pytest.raises(ConfigurationError, match=told):
        lint(shipped, settings(tmp_path, **long), QUEUE_NAMES)


def test_a_queue_without_a_program_is_refused(shipped, tmp_path):
    with pytest.raises(ConfigurationError, match=r"queue thumb_nails.*\[program:thumb-nails\]"):
        lint(shipped, settings(tmp_path), [*QUEUE_NAMES, "thumb_nails"])


def test_a_start_gives_each_queue_of_the_application_a_program(shipped, tmp_path):
    queues = [*QUEUE_NAMES, "thumb_nails"]
    compose.complete(shipped, settings(tmp_path), queues, CONTROL, None)
    lint(shipped, settings(tmp_path), queues)
    assert shipped["program:thumb-nails"]["command"].endswith("workers thumb_nails'")
    assert "thumb-nails" in shipped["group:queues"]["programs"].split(",")


def test_a_start_fits_stop_times_to_the_drain(shipped, tmp_path):
    longer = settings(tmp_path, WEIRKEEPER_DRAIN_SECONDS="100")
    compose.complete(shipped, longer, QUEUE_NAMES, CONTROL, None)
    lint(shipped, longer, QUEUE_NAMES)
    assert int(shipped["program:index"]["stopwaitsecs"]) > 107


def test_what_a_start_adds_is_told_as_what_to_write(shipped, tmp_path):
    longer = settings(tmp_path, WEIRKEEPER_DRAIN_SECONDS="22")
    told = compose.fit(shipped, longer, [*QUEUE_NAMES, "thumb_nails"])
    assert told[0].startswith("queue thumb_nails needs a [program:thumb-nails]")
    assert told[1:] == [
        f"program:{name} needs stopwaitsecs=32" for name in [*QUEUE_NAMES, "thumb-nails"]
    ]
    assert compose.fit(shipped, longer, [*QUEUE_NAMES, "thumb_nails"]) == []


def test_the_bounds_of_a_stop_leave_a_margin_below_stopwaitsecs(shipped, tmp_path):
    patience = compose.stop_seconds(settings(tmp_path))
    assert patience == 20 + 2 + drain.MARGIN + drain.ENDING
    assert drain.FLUSH + queue_process.UNHEARD + queue_process.LEAST <= drain.ENDING
    assert shipped.getint("program:index", "stopwaitsecs") >= patience + compose.MARGIN


def test_stdout_conf_names_every_program(tmp_path):
    (tmp_path / "conf").mkdir()
    shutil.copy(ROOT / "deploy" / "stdout.conf", tmp_path / "conf")
    parser = compose.read(tmp_path)
    lint(parser, settings(tmp_path), QUEUE_NAMES)
    logs = {parser[f"program:{name}"]["stdout_logfile"] for name in compose.programs(parser)}
    assert logs == {"/dev/fd/1"}


def streams(parser, tmp_path, output):
    """What check_streams says of a standard output, in a process that has it."""
    file = tmp_path / "parsed.conf"
    with file.open("w") as out:
        parser.write(out)
    code = (
        "import sys; from configparser import RawConfigParser as P;"
        "from weirkeeper.server.streams import check_streams;"
        "p = P(); p.read(sys.argv[1]); check_streams(p)"
    )
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(
        command, stdout=output, stderr=subprocess.PIPE, cwd=ROOT, check=False, timeout=30, text=True
    )
    return done.stderr


def test_logs_to_a_stream_that_would_lose_them_are_refused(shipped, tmp_path):
    file = tmp_path / "log"
    ours, theirs = socket.socketpair()
    with ours, theirs, file.open("w") as torn, file.open("a") as whole:
        assert streams(shipped, tmp_path, theirs) == ""
        shipped["program:relay"]["stdout_logfile"] = "/dev/fd/1"
        assert "got 'a socket, which cannot be opened'" in streams(shipped, tmp_path, theirs)
        assert "got 'a file opened with >'" in streams(shipped, tmp_path, torn)
        assert streams(shipped, tmp_path, whole) == ""
        assert streams(shipped, tmp_path, subprocess.PIPE) == ""


def test_the_embedded_database_starts_first_and_stops_last(shipped, tmp_path):
    compose.complete(shipped, settings(tmp_path), QUEUE_NAMES, CONTROL, ["/a b/pg", "100%"])
    assert shipped["program:postgres"]["command"] == (
        "'/a b/pg' 100%% %(ENV_WEIRKEEPER_SUPERVISORD)s"
    )
    assert shipped["program:postgres"]["stopsignal"] == "INT"
    priorities = [
        shipped.getint(s, "priority") for s in shipped.sections() if s.startswith("group:")
    ]
    assert shipped.getint("group:postgres", "priority") == min(priorities)


def test_the_operators_own_file_is_read_last(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "more.conf").write_text("[program:index]\nstopwaitsecs=77\n")
    assert compose.read(tmp_path)["program:index"]["stopwaitsecs"] == "77"


def test_what_is_written_only_we_can_read(shipped, tmp_path):
    (tmp_path / "run").mkdir()
    compose.complete(shipped, settings(tmp_path), QUEUE_NAMES, CONTROL, None)
    file = compose.write(shipped, tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret" in file.read_text()
