"""Settings: read once, cross-checked, told in one form, shown without secrets."""

from __future__ import annotations

import json
from configparser import RawConfigParser
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.app import App
from shared.config.budget import budget, overdrawn, parent, sessions
from shared.config.env import SETTINGS
from shared.config.queues import QUEUES, Queue
from shared.config.settings import Settings
from shared.config.urls import masked
from shared.errors import ConfigurationError
from shared.jobs.kinds import Kind
from weirkeeper.server.slots import processes

URL = "postgresql://me:secret@db:5432/app"


def load(**environ: str) -> Settings:
    return Settings.load({"WEIRKEEPER_HOME": "/nowhere", **environ})


def test_defaults():
    found = load()
    assert (found.host, found.listener_port, found.metrics_port) == ("127.0.0.1", 8711, 9711)
    assert (found.drain_seconds, found.grace_seconds, found.log_level) == (20, 2, "info")
    assert not found.core_dumps
    assert (found.app, found.database_url, found.embedded) == (None, "", True)


def test_they_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        load().host = "elsewhere"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("WEIRKEEPER_LISTENER_PORT", "http", "expected a whole number from 0 to 65535; got 'http'"),
        ("WEIRKEEPER_METRICS_PORT", "65536", "expected a whole number from 0 to 65535"),
        ("WEIRKEEPER_POSTGRES_PORT", "-1", "expected a whole number"),
        ("WEIRKEEPER_METRICS_PORT", "8711", "a port that no other of our ports is; got 8711"),
        ("WEIRKEEPER_POSTGRES_PORT", "9711", "a port that no other of our ports is; got 9711"),
        ("WEIRKEEPER_HOST", "0.0.0.0", "expected a loopback address"),
        ("WEIRKEEPER_HOST", "a b", "expected a loopback address"),
        ("WEIRKEEPER_DRAIN_SECONDS", "soon", "expected a number of seconds from 0 to 3600"),
        ("WEIRKEEPER_DRAIN_SECONDS", "nan", "expected a number of seconds"),
        ("WEIRKEEPER_GRACE_SECONDS", "inf", "expected a number of seconds"),
        ("WEIRKEEPER_LOG_LEVEL", "loud", "expected one of debug, info, warning, error"),
        ("WEIRKEEPER_CHILDREN", "index", 'expected a list such as "index=4,notify=2"'),
        ("WEIRKEEPER_CHILDREN", "index=0", "give each queue a number from 1 to 1000"),
        ("WEIRKEEPER_CHILDREN", "index=٤٤٤٤", "give each queue a number"),
        ("WEIRKEEPER_CHILDREN", "index=4,index=5", "got 'index twice'; name each queue once"),
        ("WEIRKEEPER_CHILDREN", "index=4,,", "got ''; give each queue a number"),
        ("WEIRKEEPER_HOME", "/tmp/\udcff", "expected text in UTF-8; got 'other bytes'"),
        ("DATABASE_URL", "postgresql://h/\udcff", "expected text in UTF-8"),
        ("DATABASE_URL", "mysql://x", "expected a URL that begins with postgresql://"),
        ("WEIRKEEPER_DIRECT_URL", "db", "expected a URL that begins with postgresql://"),
        ("WEIRKEEPER_LISTENR_PORT", "1", "expected a setting that docs/settings.md lists"),
    ],
)
def test_what_cannot_work_is_refused_by_name(name, value, said):
    with pytest.raises(ConfigurationError) as caught:
        load(**{name: value})
    assert str(caught.value).startswith(f"{name}: ")
    assert said in str(caught.value)


def test_ports_that_are_not_bound_together_may_be_equal():
    free = {f"WEIRKEEPER_{n}_PORT": "0" for n in ("LISTENER", "METRICS", "POSTGRES")}
    assert load(**free).metrics_port == 0
    assert load(DATABASE_URL=URL, WEIRKEEPER_LISTENER_PORT="54711").listener_port == 54711


def test_a_bad_url_is_refused_without_its_password():
    with pytest.raises(ConfigurationError) as caught:
        load(DATABASE_URL="mysql://me:secret@db/app")
    assert "secret" not in str(caught.value)


BAD_URLS = (
    "postgres://u:sec/ret@127.0.0.1:1/x",
    "postgresql://u:sec@ret@127.0.0.1:1/x",
    "postgresql://u:sec%ret@127.0.0.1:1/x",
    "postgresql://u:sec ret@127.0.0.1:1/x",
    "postgresql://127.0.0.1:sec/x",
    "postgresql://127.0.0.1:1/x?sec",
    "postgresql://127.0.0.1:1/x?password=sec=ret",
    "postgresql://?password=secret@127.0.0.1",
    "host=127.0.0.1 password=secret port=1",
    "secret",
)


@pytest.mark.parametrize("name", ["DATABASE_URL", "WEIRKEEPER_DIRECT_URL"])
@pytest.mark.parametrize("url", BAD_URLS)
def test_a_url_that_libpq_would_read_otherwise_is_refused_without_any_of_it(name, url):
    with pytest.raises(ConfigurationError, match=f"^{name}: expected a URL that begins") as caught:
        load(**{name: url})
    assert "sec" not in str(caught.value)
    assert "ret" not in str(caught.value)
    assert "sec" not in masked(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql:///app", "postgresql:///app"),
        ("postgresql://me@%2Ftmp:5432/app", "postgresql://me@%2Ftmp:5432/app"),
        ("postgres://me:se?cr#et@[::1]:5432/a", "postgres://me:***@[::1]:5432/a"),
        ("postgresql://a:1,b:2/app?sslmode=require", "postgresql://a:1,b:2/app?sslmode=require"),
        ("postgresql://h:1/x?password=secret", "postgresql://h:1/x?password=***"),
        ("postgresql://h/x?p%61ssword=secret&port=1", "postgresql://h/x?p%61ssword=***&port=1"),
        ("postgresql://h/x?sslpassword=secret", "postgresql://h/x?sslpassword=***"),
        ("postgresql://h/x?pasword=secret", "postgresql://h/x?pasword=***"),
    ],
)
def test_a_url_is_shown_without_what_is_secret(url, shown):
    assert load(DATABASE_URL=url).describe()["database_url"] == shown


def test_children_by_queue():
    queues = {q.name: q for q in QUEUES}
    tuned = load(WEIRKEEPER_CHILDREN=" index=9, notify=1").tuned(queues)
    assert (tuned["index"].children, tuned["notify"].children) == (9, 1)
    assert tuned["fetch"] == queues["fetch"]
    with pytest.raises(ConfigurationError, match=r"WEIRKEEPER_CHILDREN: expected queues among"):
        load(WEIRKEEPER_CHILDREN="nowhere=1").tuned(queues)


def test_a_server_publishes_its_database(tmp_path):
    (tmp_path / "run").mkdir()
    file = tmp_path / "run" / "server.json"
    file.write_text(json.dumps({"database_url": URL}))
    found = load(WEIRKEEPER_HOME=str(tmp_path))
    assert (found.database(), found.embedded) == (URL, True)
    given_url = "postgresql://other/db"
    found = load(WEIRKEEPER_HOME=str(tmp_path), DATABASE_URL=given_url)
    assert (found.database(), found.embedded) == (given_url, False)
    for broken in ("", "[]", "{}", '{"database_url": 7}', "\x00"):
        file.write_text(broken)
        with pytest.raises(ConfigurationError, match=r"no server runs here: expected one in "):
            load(WEIRKEEPER_HOME=str(tmp_path)).database()


def test_processes_connect_directly():
    found = load(DATABASE_URL="postgresql://pooler/x", WEIRKEEPER_DIRECT_URL="postgresql://db/x")
    assert found.database() == "postgresql://db/x"


def test_what_is_shown_hides_every_password():
    shown = json.dumps(load(DATABASE_URL=URL, WEIRKEEPER_DIRECT_URL=URL).describe(), default=str)
    assert "secret" not in shown
    assert "postgresql://me:***@db:5432/app" in shown


def test_sets_are_shown_as_lists():
    outbound = load(WEIRKEEPER_OUTBOUND_PORTS="8443,443").describe()["outbound"]
    assert outbound["ports"] == [443, 8443]
    assert outbound["allow"]["names"] == []


@given(password=st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=1, max_size=30))
def test_no_password_survives_masking(password):
    url = masked(f"postgresql://user:p{password}p@db/app")
    assert url == "postgresql://user:***@db/app"


def test_every_setting_has_a_meaning_and_one_row():
    assert len({s.name for s in SETTINGS}) == len(SETTINGS)
    assert all(s.meaning and s.name.isupper() for s in SETTINGS)


def test_the_budget_is_spelled_out_when_it_does_not_fit():
    sums = budget(QUEUES)
    assert sums.total == sum(q.children for q in QUEUES) + 3 * len(QUEUES) + 3 + 3 + 2 + 2 + 1
    sums.check(2 * sums.total)
    with pytest.raises(ConfigurationError) as caught:
        sums.check(2 * sums.total - 1)
    assert f"= {sums.total}" in str(caught.value)
    assert "index (3 + 4 children) 7" in str(caught.value)


def test_the_budget_counts_every_process():
    one, three = budget(QUEUES), budget(QUEUES, {"index": 3, "relay": 2, "notify": 0})
    index, notify = (3 + q.children for q in QUEUES if q.name in ("index", "notify"))
    assert three.total == one.total + 2 * index + 3 - notify
    assert "3 x index (3 + 4 children) 21" in three.spelled()
    assert "2 x relay 6" in three.spelled()


def test_queues_of_one_process_share_its_beat():
    queues = {q.name: q for q in QUEUES}
    parser = RawConfigParser(comment_prefixes=("#",))
    parser.read_string(
        "[program:small]\ncommand=python -P -m workers " + " ".join(queues) + "\n"
        "[program:relay]\ncommand=python -P -m relay\n"
    )
    apart, together = budget(QUEUES), budget(QUEUES, processes(parser))
    assert together.total == apart.total - (len(queues) - 1)
    alone = sum(q.children for q in QUEUES) + parent(len(queues))
    assert together.total == alone + 3 + 3 + 2 + 2 + 1


def test_what_all_living_processes_need_is_told_and_refused_by_nobody():
    assert overdrawn(27, 37) == ""
    told = overdrawn(28, 37)
    assert "may open 28 connections of the server's 37 usable ones" in told


TOOL = {"command": ("/bin/tool",)}


@pytest.mark.parametrize(
    ("sessionless", "queue", "kinds"),
    [
        (True, {}, [{"handler": "m:f", "database": False}]),
        (True, {}, [{"handler": "m:f", "database": False}, TOOL]),
        (True, TOOL, [{}]),
        (False, {}, [{"handler": "m:f", "database": False}, {"handler": "m:f"}]),
        (False, {}, [{**TOOL, "environment": ("DATABASE_URL",)}]),
        (False, {**TOOL, "environment": ("STORE=postgresql://db/app",)}, [{}]),
        (False, {}, []),
    ],
)
def test_children_that_get_no_database_are_not_counted(sessionless, queue, kinds):
    named = [Kind(f"a.k{number}", "q", **more) for number, more in enumerate(kinds)]
    q = Queue("q", children=7, **queue)
    app = App(queues=(q,), kinds=named, include_site=False)
    assert ("q" in app.sessionless) == sessionless
    assert sessions(q, app.sessionless) == (0 if sessionless else 7)
    parts = dict(budget([q], None, app.sessionless).parts)
    assert parts == {**parts, **({"q": 3} if sessionless else {"q (3 + 7 children)": 10})}
