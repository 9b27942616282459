"""The demo: real input through running processes, repeatable, for people and for programs."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import psycopg
import pytest

from panel.cli.commands import demo
from shared.app import App
from shared.config.loopback import RECEIVER
from shared.errors import NotFound
from shared.postgres.queues.catalog import declare
from tests.support.databases import with_database
from tests.support.flow import Flow, answer, cli, write_notes
from tests.support.hooks import LOCAL
from tests.support.waiting import until


@pytest.fixture
def flow(programs, database_url):
    programs.start("relay")
    programs.start("workers", "index")
    with psycopg.connect(database_url, autocommit=True) as conn:
        found = Flow(conn)
        found.until_ready("relay", "index")
        yield found


def run(programs, *arguments):
    program = cli(programs, "demo", *arguments)
    assert program.wait(120) == 0, program.text()
    return program.text()


def let_webhooks(programs, flow):
    """Have them sent, and one endpoint left by a demo that was killed."""
    programs.environment |= {**LOCAL, "WEIRKEEPER_OUTBOUND_ALLOW": RECEIVER}
    programs.start("workers", "webhook")
    flow.until_ready("webhook")
    old = ("https://nobody.example.org/", "--type", "corpus.*", "--description", "weirkeeper demo")
    made = answer(programs, "webhooks", "create", *old)
    shown = cli(programs, "webhooks", "get", made["id"])
    assert shown.wait(30) == 0
    assert 'event_types: ["corpus.*"]\n' in shown.text()
    assert made["secret"] not in shown.text()


def report(programs, *arguments):
    text = run(programs, *arguments, "--json")
    return json.loads(text[text.index("\n{") :])


def test_twice(programs, flow, tmp_path):
    let_webhooks(programs, flow)
    (write_notes(tmp_path, 30) / "bad.md").write_bytes(b"\xff")
    first, second = (report(programs, "--notes", str(tmp_path)) for _ in range(2))
    assert (first["imported"]["created"], len(first["imported"]["skipped"])) == (33, 1)
    assert (second["imported"]["created"], second["imported"]["unchanged"]) == (0, 33)
    assert flow.notes() == 33 + first["receipts"]
    for told in (first, second):
        assert told["not_searchable"] == []
        assert told["receipts_indexed"] == told["receipts"] == 25
        assert 0 < told["single_ms"]["p50"] <= told["single_ms"]["p99"]
        assert 0 < told["largest_pass"] <= 200
        sent = told["webhooks"]
        assert (sent["received"], sent["missing"], sent["why_not"]) == (25, 0, "")
        assert 0 < sent["ms"]["p50"] <= sent["ms"]["p99"]
        hits = {s["query"]: s["found"]["hits"] for s in told["searches"]}
        assert all(hits.values()), hits
        assert any("中继" in hit["snippet"] for hit in hits["中继 两百"])
        assert told["searches"][-1]["found"]["corrected"] == {"comitted": ["committed"]}
    assert first["events"] == 33 + 25
    assert second["events"] == 25
    flow.check_nothing_lost_or_doubled()
    assert flow.one("select count(*) from weirkeeper.endpoint") == 0

    programs.environment["WEIRKEEPER_SECRET"] = ""
    text = run(programs, "--notes", str(tmp_path))
    assert "webhooks left out: WEIRKEEPER_SECRET: expected" in text
    programs.environment |= {**LOCAL, "WEIRKEEPER_OUTBOUND_ALLOW": "10.0.0.0/8"}
    told = report(programs, "--notes", str(tmp_path))["webhooks"]
    assert told["why_not"].startswith(f"{RECEIVER} may not be called here (")
    assert "start the server with script/server" in told["why_not"]
    assert "bad.md: skipped: expected UTF-8" in text
    lines = [line.split("  ")[0] for line in text.splitlines()]
    figures = [line.split("  ")[-1] for line in text.splitlines() if "all searchable" in line]
    assert figures == ["nothing had changed"]
    for name in ("notes imported", "relay passes", "note → searchable", "receipt", "query"):
        assert name in lines
    assert "\x1b" not in text


def test_the_project_s_own_docs_are_each_counted_once(programs, flow):
    told = [report(programs)["imported"] for _ in range(2)]
    notes = flow.one("select count(*) from site.note where slug not like 'demo-%'")
    assert [(t["created"], t["unchanged"]) for t in told] == [(notes, 0), (0, notes)]
    assert "webhooks left out: no process of queue webhook is ready" in run(programs)


def test_an_application_without_the_site_is_refused_in_one_line(programs, flow):
    declare(flow.conn, App(include_site=False), replace=True)
    program = cli(programs, "demo")
    assert program.wait(30) == 78
    (line,) = program.text().splitlines()
    assert line.startswith("weirkeeper demo: application: expected one with the reference site")
    assert flow.notes() == 0


def test_a_package_without_docs_asks_for_a_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    with pytest.raises(NotFound, match="pass a folder of Markdown: --notes DIR"):
        demo._folders(None)


def test_a_database_that_goes_away_ends_it(programs, database_url, tmp_path):
    relay, index = programs.start("relay"), programs.start("workers", "index")
    name = urlsplit(database_url).path[1:]
    with psycopg.connect(with_database(database_url, "postgres"), autocommit=True) as server:
        with psycopg.connect(database_url, autocommit=True) as conn:
            flow = Flow(conn)
            flow.until_ready("relay", "index")
            conn.execute("select weirkeeper.pause(queue => 'index')")
            program = cli(programs, "demo", "--notes", str(write_notes(tmp_path, 3)))
            imported = "select count(*) from weirkeeper.event where type = 'vault.imported'"
            until(lambda: flow.one(imported), 60, "the import is done, and it waits")
        server.execute(f"alter database {name} allow_connections false")
        ended = "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s"
        server.execute(ended, [name])
        try:
            assert program.wait(30) == 1, program.text()
        finally:
            server.execute(f"alter database {name} allow_connections true")
    assert "weirkeeper demo: the database went away while the demo waited" in program.text()
    assert relay.terminate(30) == index.terminate(30) == 0
