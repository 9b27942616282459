"""supervisord.conf: what ships passes the lint, each mistake is refused, a start completes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.config.queues import QUEUES
from shared.config.settings import Settings
from shared.errors import ConfigurationError
from weirkeeper.server import compose
from weirkeeper.server.lint import lint

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


def test_the_embedded_database_starts_first_and_stops_last(shipped, tmp_path):
    compose.complete(shipped, settings(tmp_path), QUEUE_NAMES, CONTROL, ["/a b/pg", "100%"])
    assert shipped["program:postgres"]["command"] == "'/a b/pg' 100%%"
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
