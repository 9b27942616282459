"""What the metrics program tells besides the slots' instruments: names, help texts, labels.

The numbers come from Postgres (shared.postgres.inspection.gauges, read by metrics.collector) or
from the program itself. docs/metrics.md lists the same rows; a test keeps the two equal. Several
hosts: every number read from the database is the whole deployment's, so aggregate with max, not
sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from shared.stats import CAP, CAP_ENDED, Reading


class Gauge(NamedTuple):
    """One family of gauges."""

    name: str
    help_text: str
    labels: tuple[str, ...] = ()


FROM_DATABASE = (
    Gauge(
        "jobs",
        f"Jobs by state; waiting ones counted to {CAP}, discarded and cancelled to {CAP_ENDED};"
        " completed ones are never counted.",
        ("queue", "state"),
    ),
    Gauge("queue_ready_jobs", f"Jobs that could be claimed now, counted to {CAP}.", ("queue",)),
    Gauge("queue_oldest_ready_age_seconds", "How long the oldest has been claimable.", ("queue",)),
    Gauge("queue_oldest_running_age_seconds", "How long the oldest has run.", ("queue",)),
    Gauge(
        "index_entries_per_claim",
        "Entries of the index of waiting jobs that a claim read in each lane, on average since the"
        " last reading; dead ones that vacuum may not remove count.",
    ),
    Gauge("outbox_pending_events", f"Events that wait for the relay, counted to {CAP}."),
    Gauge("outbox_oldest_pending_age_seconds", "How long the first of them has waited."),
    Gauge("outbox_poisoned_events", "Events that the relay gave up."),
    Gauge(
        "leases_held",
        "What is held now, by resource: jobs by processes, endpoints by deliveries that run.",
        ("resource",),
    ),
    Gauge(
        "leases_expired",
        "Jobs held by a process that has ended or sent no beat for 15 s: above 0 for long, nobody"
        " takes them back.",
        ("resource",),
    ),
    Gauge(
        "webhook_endpoints",
        f"Endpoints by state (active, failing = enabled but failing, disabled), to {CAP}.",
        ("state",),
    ),
    Gauge(
        "webhook_longest_failing_seconds",
        "How long the enabled endpoint has failed that has failed for longest.",
    ),
    Gauge(
        "processes",
        "Newest life of each slot: starting, ready, draining, stopped; lost = no beat for 15 s.",
        ("role", "status"),
    ),
    Gauge(
        "process_beat_age_seconds",
        "Since the last beat of a slot's newest life; of several hosts the oldest.",
        ("slot",),
    ),
    Gauge("db_connections", "Sessions of the database.", ("role", "state")),
    Gauge("db_connection_budget", "Most connections that one deployment may need."),
    Gauge(
        "db_connections_needed",
        "What all living processes may open together, of every host and generation.",
    ),
    Gauge("db_oldest_transaction_seconds", "Age of the database's oldest open transaction."),
    Gauge("db_xmin_age_seconds", "Age of the server's oldest snapshot: dead rows stay so long."),
    Gauge(
        "db_xmin_age_transactions",
        "The same in transactions, and of replication slots and standbys as well.",
    ),
    Gauge("notify_queue_usage", "Share of the notify queue in use; at 1 commits fail."),
    Gauge("drain_last_timestamp_seconds", "When a slot's last stop ended.", ("slot",)),
    Gauge("drain_last_phase_seconds", "Phases of a slot's last stop.", ("slot", "phase")),
    Gauge("paused", "1 for each queue or kind that is paused.", ("what", "name")),
    Gauge("quarantined", "1 for each kind that is paused for killing its children.", ("kind",)),
    Gauge(
        "periodic_last_success_timestamp_seconds",
        "When a periodic job last completed; none before the first time.",
        ("name",),
    ),
    Gauge("jobs_of_unknown_kinds", f"Claimable jobs of undeclared kinds, to {CAP} a kind."),
)
OF_ITSELF = (
    Gauge(
        "collector_last_success_timestamp_seconds",
        "When an area was last read from the database: the age of its numbers.",
        ("area",),
    ),
    Gauge("collector_read_seconds", "How long the last read of an area took.", ("area",)),
    Gauge(
        "supervisor_process_state",
        "1 for the state that supervisord tells of each program of this host: FATAL = given up.",
        ("program", "state"),
    ),
    Gauge("metrics_damaged_files", "Files of slots that this scrape could not read."),
    Gauge("build_info", "1, with what runs as labels.", ("version", "schema")),
)


def rendered(gauges: Iterable[Gauge], readings: Iterable[Reading]) -> list[Metric]:
    """Families with their numbers; a family without any is left out.

    Args:
        gauges: the families.
        readings: numbers, each of one of the families.
    """
    families = {
        g.name: GaugeMetricFamily(f"weirkeeper_{g.name}", g.help_text, labels=g.labels)
        for g in gauges
    }
    for reading in readings:
        families[reading.name].add_metric(reading.labels, reading.value)
    return [family for family in families.values() if family.samples]
