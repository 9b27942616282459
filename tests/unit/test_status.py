"""Judging process rows: what `weirkeeper status` says and exits with."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

from panel.cli.processes import Report, expected_slots, look, report
from shared.config.queues import QUEUES
from shared.services.process import identity

EXPECTED = expected_slots(["index", "big_jobs"])


def row(role: str, slot: str, **more: Any) -> dict[str, Any]:
    me = identity()
    return {
        "role": role,
        "slot": slot,
        "phase": "ready",
        "beat_age": 0.5,
        "host": me.host,
        "boot_id": me.boot_id,
        "pid_namespace": me.pid_namespace,
        "pid": me.pid,
        "pid_started": me.pid_started,
        "address": None,
        "children": 2,
        "version": "1",
        "queue": slot.replace("-", "_") if role == "queue" else None,
        "generation": "1",
    } | more


def everybody() -> list[dict[str, Any]]:
    return [row(role, slot) for role, slot in EXPECTED]


def phases(found: Report) -> dict[str, str]:
    return {p.slot: p.phase for p in found.processes}


def test_a_process_for_each_queue_and_one_each_of_the_others():
    assert EXPECTED == [
        ("relay", "relay"),
        ("queue", "index"),
        ("queue", "big-jobs"),
        ("listener", "listener"),
        ("metrics", "metrics"),
    ]


def test_all_ready():
    found = report(EXPECTED, everybody())
    assert found.ready
    assert found.told() == "all 5 processes are ready"


def test_what_is_not_ready_is_named():
    rows = everybody()
    rows[0]["phase"] = "starting"
    del rows[1]
    found = report(EXPECTED, rows)
    assert not found.ready
    assert found.told() == "3 of 5 processes are ready; not: relay (starting), index (missing)"
    assert found.plain()["ready"] is False


def test_only_the_newest_life_of_a_slot_counts():
    rows = [*everybody(), row("queue", "index", phase="stopped"), row("relay", "relay", pid=1)]
    assert report(EXPECTED, rows).ready
    rows.insert(0, row("queue", "index", phase="stopped"))
    assert phases(report(EXPECTED, rows))["index"] == "stopped"


def test_a_beat_that_is_old_is_no_life():
    rows = everybody()
    rows[2]["beat_age"] = 6.5
    assert phases(report(EXPECTED, rows))["big-jobs"] == "gone"


def test_a_process_of_this_host_that_is_gone_is_seen_at_once():
    rows = everybody()
    rows[3]["pid_started"] += 1
    rows[4] |= {"pid_started": 1, "boot_id": "another host's"}
    found = report(EXPECTED, rows)
    assert phases(found)["listener"] == "gone"
    assert phases(found)["metrics"] == "ready"


def test_spare_slots_are_shown_while_they_live_and_not_expected():
    rows = [
        *everybody(),
        row("queue", "index-2", phase="starting"),
        row("queue", "index-3", phase="stopped"),
        row("queue", "index-4", beat_age=99),
    ]
    found = report(EXPECTED, rows)
    assert found.ready
    assert [p.slot for p in found.processes][5:] == ["index-2"]


def test_what_is_shown_beside_the_expected_is_told_too():
    found = report(EXPECTED, [*everybody(), row("queue", "mine")])
    assert found.told() == "all 5 processes are ready; beside them: mine (ready)"


def test_the_queues_are_those_of_the_server_that_runs_here(tmp_path, monkeypatch):
    def judged(published: dict[str, object]) -> list[str]:
        (tmp_path / "run" / "server.json").write_text(json.dumps(published))
        return [p.slot for p in look().processes if p.role == "queue"]

    (tmp_path / "run").mkdir()
    monkeypatch.setenv("WEIRKEEPER_HOME", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr("panel.cli.processes.connect", lambda *_: nullcontext())
    monkeypatch.setattr("panel.cli.processes.processes", lambda _: [])
    monkeypatch.setattr("panel.cli.processes.controls.paused", lambda _: [])
    monkeypatch.setattr("panel.cli.processes.needed_by_all", lambda _: 0)
    monkeypatch.setattr("panel.cli.processes.usable_connections", lambda _: 97)
    url = "postgresql://published/x"
    assert judged({"database_url": url, "queues": ["index", "mine"]}) == ["index", "mine"]
    monkeypatch.setenv("DATABASE_URL", "postgresql://another/x")
    assert judged({"database_url": url, "queues": ["mine"]}) == [q.name for q in QUEUES]


def test_a_problem_is_never_ready():
    assert not Report(problem="away").ready
    assert Report(problem="away").told() == "away"


def test_children_are_summed_over_the_ready_processes_of_a_queue():
    rows = [*everybody(), row("queue", "index-2", queue="index", children=5)]
    found = report(EXPECTED, rows)
    assert [asdict(c) for c in found.capacity] == [
        {"queue": "index", "processes": 2, "children": 7},
        {"queue": "big_jobs", "processes": 1, "children": 2},
    ]
    rows[-1]["phase"] = "draining"
    assert [c.children for c in report(EXPECTED, rows).capacity] == [2, 2]
    assert found.plain()["queues"][0]["children"] == 7


def test_a_slot_of_two_hosts_is_two_processes_and_one_that_works_is_enough():
    rows = [*everybody(), row("queue", "index", host="other", boot_id="x", queue="index")]
    found = report(EXPECTED, rows)
    assert found.ready
    assert [(p.slot, p.host == "other") for p in found.processes if p.role == "queue"] == [
        ("index", False),
        ("big-jobs", False),
        ("index", True),
    ]
    assert found.capacity[0].processes == 2
    rows[1] |= {"phase": "stopped"}
    found = report(EXPECTED, rows)
    assert found.ready
    assert [p.host for p in found.processes if p.slot == "index"] == ["other"]
