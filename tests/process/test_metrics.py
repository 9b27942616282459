"""The metrics program as a real process, scraped by prometheus_client's parser and by Prometheus."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families

from shared.telemetry.instruments import open_instruments
from tests.support.cluster import free_port
from tests.support.rows import address_when_ready, enqueue, finish, session
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def metrics(programs):
    return programs.start("metrics")


@pytest.fixture
def address(metrics, database_url):
    return address_when_ready(database_url, "metrics")


@pytest.fixture
def scrape(address):
    def samples() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        answer = httpx.get(f"http://{address}/metrics")
        assert answer.status_code == 200
        return {
            (s.name.removeprefix("weirkeeper_"), tuple(sorted(s.labels.items()))): s.value
            for family in text_string_to_metric_families(answer.text)
            for s in family.samples
        }

    return samples


def labels(**given: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(given.items()))


def test_both_sources_are_told(scrape, programs, database_url):
    with session(database_url) as conn:
        for _ in range(3):
            enqueue(conn)
        finish(conn, enqueue(conn), "discarded")
    instruments = open_instruments(programs.home, "index")
    instruments.jobs_claimed_total.labels("index").inc(5)
    instruments.job_run_seconds.labels("index", "corpus.index").observe(0.02)
    instruments.pool_slots.labels("index").set(4)
    instruments.turned("claims")
    last = [
        ("jobs", labels(queue="index", state="pending")),
        ("jobs", labels(queue="index", state="discarded")),
        ("processes", labels(role="metrics", status="ready")),
    ]
    found = until(
        lambda: all(key in (s := scrape()) for key in last) and s,
        15,
        "the collector has read every area",
    )
    assert found["jobs", labels(queue="index", state="pending")] == 3
    assert found["jobs_claimed_total", labels(queue="index")] == 5
    assert found["pool_slots", labels(queue="index", slot="index")] == 4
    assert 0 <= found["loop_age_seconds", labels(loop="claims", slot="index")] < 20
    assert found["job_run_seconds_count", labels(queue="index", kind="corpus.index")] == 1
    assert found["jobs", labels(queue="index", state="discarded")] == 1
    assert found["queue_ready_jobs", labels(queue="index")] == 3
    assert found["processes", labels(role="metrics", status="ready")] == 1
    assert found["metrics_damaged_files", ()] == 0
    assert found["build_info", labels(version="0.1.0", schema=str(latest()))] == 1
    read_at = found["collector_last_success_timestamp_seconds", labels(area="queues")]
    assert abs(read_at - time.time()) < 20
    instruments.close()
    after = scrape()
    assert after["jobs_claimed_total", labels(queue="index")] == 5
    assert ("pool_slots", labels(queue="index", slot="index")) not in after


def latest() -> int:
    return max(int(p.name[:4]) for p in (ROOT / "shared/postgres/migrations").glob("*.sql"))


def test_openmetrics_when_asked_for(address):
    kind = "application/openmetrics-text; version=1.0.0"
    answer = httpx.get(f"http://{address}/metrics", headers={"accept": kind})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert list(parse_openmetrics(answer.text))
    assert answer.text.endswith("# EOF\n")


def test_health(address):
    assert httpx.get(f"http://{address}/livez").json() == {"ok": True}
    assert httpx.get(f"http://{address}/readyz").json() == {"ok": True}
    assert "/metrics" in httpx.get(f"http://{address}/").text
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/metrics/", 404),
        ("GET", "/livez/", 404),
        ("HEAD", "/metrics", 405),
        ("POST", "/metrics", 405),
    ):
        answer = httpx.request(method, f"http://{address}{path}")
        assert answer.status_code == status, (method, path)
        assert method == "HEAD" or "GET" in answer.json()["error"], (method, path)


def test_damage_and_dead_slots_are_survived(scrape, programs, address):
    """Truncated, noise, dead lives; the scrape answers all the same, and soon."""
    folder = programs.home / "metrics"
    for n in range(50):
        (folder / f"counter_noise-{n}.db").write_bytes(os.urandom(4096))
    (folder / "counter_cut.db").write_bytes(b"\x01")
    (folder / "something else.db").write_bytes(b"x")
    begun = time.monotonic()
    found = scrape()
    assert time.monotonic() - begun < 20
    assert found["metrics_damaged_files", ()] == 51
    assert httpx.get(f"http://{address}/readyz").status_code == 200


def test_a_database_that_is_away_ages_the_numbers(programs):
    program = programs.start(
        "metrics", env={"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    )
    until(lambda: "answers on http://" in program.text(), 10, "it answers")
    said = next(r["message"] for r in program.records() if "answers on" in r["message"])
    url = said.partition("answers on ")[2].removesuffix("/metrics")
    text = httpx.get(f"{url}/metrics").text
    assert list(text_string_to_metric_families(text))
    assert "collector_last_success" not in text
    assert httpx.get(f"{url}/livez").status_code == 200
    ready = httpx.get(f"{url}/readyz")
    assert (ready.status_code, ready.json()["reason"]) == (503, "the database does not answer")
    until(
        lambda: 'db_errors_total{sqlstate_class="none"}' in httpx.get(f"{url}/metrics").text, 9, ""
    )
    assert program.terminate(5) == 0


def test_numbers_stay_and_age_when_sessions_are_lost(scrape, database_url, metrics):
    before = scrape()
    with session(database_url) as conn:
        conn.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and application_name like 'weirkeeper metrics %'"
        )
    key = ("collector_last_success_timestamp_seconds", labels(area="queues"))
    assert scrape()[key] == before[key]
    until(lambda: scrape()[key] > before[key], 15, "read again")
    assert metrics.running()


def test_it_stops_in_order(metrics, address, database_url):
    metrics.send(signal.SIGTERM)
    assert metrics.wait(30) == 0
    with session(database_url) as conn:
        row = conn.execute("select phase from weirkeeper.process where role = 'metrics'").fetchone()
    assert row == ("stopped",)


def test_a_port_that_is_taken_is_one_clear_line(programs):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        program = programs.start("metrics", env={"WEIRKEEPER_METRICS_PORT": port})
        assert program.wait(10) == 78
    assert "WEIRKEEPER_METRICS_PORT: expected a free port of 127.0.0.1" in program.text()
    assert len(program.text().strip().splitlines()) == 1


def test_check_prints_and_starts_nothing(programs):
    program = programs.start("metrics", "--check")
    assert program.wait(10) == 0
    assert json.loads(program.text())["bind"] == "127.0.0.1:0"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing_to_complain_of(address):
    deploy = ROOT / "deploy"
    for words in (
        ("check", "config", deploy / "prometheus.yml"),
        ("check", "rules", deploy / "alerts.yml"),
        ("test", "rules", deploy / "alerts.test.yml"),
    ):
        subprocess.run(["promtool", *words], check=True, timeout=30, capture_output=True)
    text = httpx.get(f"http://{address}/metrics").text
    linted = subprocess.run(
        ["promtool", "check", "metrics"],
        input=text,
        text=True,
        timeout=30,
        capture_output=True,
        check=False,
    )
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
def test_a_real_prometheus_scrapes_it(address, tmp_path):
    text = (ROOT / "deploy" / "prometheus.yml").read_text()
    config = tmp_path / "prometheus.yml"
    config.write_text(
        text.replace("127.0.0.1:9711", address).replace("15s", "1s").replace("5s", "1s")
    )
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        found = until(lambda: query(port, "weirkeeper_build_info"), 60, "a scrape is stored")
        assert found[0]["metric"]["job"] == "weirkeeper"
        assert query(port, 'up{job="weirkeeper"}')[0]["value"][1] == "1"
        assert query(port, 'weirkeeper_processes{role="metrics",status="ready"}')
    finally:
        server.terminate()
        server.wait(30)


def query(port: int, expression: str) -> list[dict]:
    try:
        answer = httpx.get(
            f"http://127.0.0.1:{port}/api/v1/query", params={"query": expression}, timeout=5
        )
    except httpx.HTTPError:
        return []
    return answer.json()["data"]["result"] if answer.status_code == 200 else []
