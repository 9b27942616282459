"""deploy/alerts.yml speaks of metrics and chapters that there are; promtool tries it elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALERTS = (ROOT / "deploy/alerts.yml").read_text()


def test_every_metric_of_a_rule_is_listed():
    named = set(re.findall(r"\bweirkeeper_\w+", ALERTS))
    listed = set(
        re.findall(r"^\| `(weirkeeper_\w+)`", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE)
    )
    assert named
    assert named <= listed


def test_every_chapter_that_a_rule_names_is_there():
    chapters = re.findall(r'is in docs/(\w+\.md), "([^"]+)"', ALERTS)
    assert len(chapters) == ALERTS.count("- alert:")
    for page, chapter in chapters:
        assert f"\n## {chapter}\n" in (ROOT / "docs" / page).read_text(), (page, chapter)


def test_every_rule_is_tried():
    tried = (ROOT / "deploy/alerts.test.yml").read_text()
    for name in re.findall(r"- alert: (\w+)", ALERTS):
        assert tried.count(f"alertname: {name}") >= 2, f"{name}: when it fires, and when not"


def test_prometheus_reads_it():
    assert "rule_files: [alerts.yml]" in (ROOT / "deploy/prometheus.yml").read_text()
