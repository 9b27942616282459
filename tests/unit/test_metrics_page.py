"""docs/metrics.md lists what the code exports, no more and no less."""

from __future__ import annotations

import re

from metrics.families import FROM_DATABASE, OF_ITSELF, rendered
from shared.stats import Reading
from tests.support.listing import rows, shown, table


def test_the_page_is_the_code():
    assert shown() == table(), "run: python -P -m tests.support.listing"


def test_names_are_as_prometheus_wants_them():
    names = [name for name, *_ in rows()]
    assert len(names) == len(set(names)) > 50
    for name, kind, labels, _, meaning in rows():
        assert re.fullmatch(r"weirkeeper_[a-z][a-z0-9_]*", name)
        assert name.endswith("_total") == (kind == "counter"), name
        assert meaning.endswith("."), name
        assert not {"id", "url", "owner", "error", "le"} & set(labels.split(", ")), name


def test_the_series_that_operations_count_on_are_there():
    names = {name.removeprefix("weirkeeper_") for name, *_ in rows()}
    assert names >= {
        "jobs",
        "queue_oldest_ready_age_seconds",
        "claims_total",
        "job_attempts_total",
        "lease_attempts_total",
        "lease_lost_total",
        "drain_seconds",
        "drain_last_phase_seconds",
        "loop_age_seconds",
        "collector_last_success_timestamp_seconds",
        "build_info",
    }


def test_families_without_numbers_are_left_out():
    found = rendered((*FROM_DATABASE, *OF_ITSELF), [Reading("jobs", ("index", "pending"), 3)])
    assert [(f.name, f.samples[0].value) for f in found] == [("weirkeeper_jobs", 3)]
