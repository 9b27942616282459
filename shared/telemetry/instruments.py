"""What the processes measure themselves: every counter, histogram and gauge, by its name.

Built once by each program's `main` (`open_instruments`) and handed down as a parameter; children
never have one. The metrics program merges the slots' files with what Postgres knows
(shared.postgres.inspection.gauges). docs/metrics.md lists the same names; a test keeps the two
equal.

Labels are closed sets: queue, kind, reason, outcome, … Never an id, a URL, an owner, an error's
text.
"""

from __future__ import annotations

from pathlib import Path

from shared.clock import SYSTEM
from shared.errors import WeirkeeperError
from shared.telemetry.series import Counter, Family, Gauge, Histogram, SlotFiles
from shared.telemetry.slots import SlotLock, metrics_folder

# Seconds. Pickups and claims live in the first half, jobs and drains in the second.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600)
ROWS = (0, 1, 2, 5, 10, 20, 50, 100, 200)


class Instruments:
    """One process's instruments. Attribute = name of the metric without `weirkeeper_`."""

    def __init__(self, slot: str, files: SlotFiles, lock: SlotLock) -> None:
        self.slot = slot
        self._files = files
        self._lock = lock
        self._turns: dict[str, float] = {}
        self._claims(files)
        self._runs(files)
        self._pool(files)
        self._drain(files)
        self._relay(files)
        self._listener(files)
        self._process(files)

    def _claims(self, files: SlotFiles) -> None:
        self.jobs_claimed_total = Counter(
            files, "jobs_claimed_total", "Jobs taken from a queue.", ["queue"]
        )
        self.claims_total = Counter(
            files,
            "claims_total",
            "Claims by what caused them (wake, poll, full, free) and how they ended"
            " (full, short, empty, error).",
            ["queue", "trigger", "result"],
        )
        self.claim_seconds = Histogram(
            files, "claim_seconds", "How long a claim took.", ["queue"], bounds=SECONDS
        )
        self.claim_batch_size = Histogram(
            files, "claim_batch_size", "Jobs that a claim brought.", ["queue"], bounds=ROWS
        )
        self.lease_attempts_total = Counter(
            files,
            "lease_attempts_total",
            "Leases by resource (job) and result (granted; what others hold is passed over).",
            ["resource", "result"],
        )
        self.lease_lost_total = Counter(
            files,
            "lease_lost_total",
            "Writes that came too late: the fence was lost to another owner.",
            ["resource"],
        )
        self.jobs_rescued_total = Counter(
            files,
            "jobs_rescued_total",
            "Jobs taken back: from a dead owner; never heard of by a living one (unheard); "
            "without a row (retaken).",
            ["queue", "reason"],
        )

    def _runs(self, files: SlotFiles) -> None:
        self.job_pickup_seconds = Histogram(
            files,
            "job_pickup_seconds",
            "From claimable to running in a child.",
            ["queue"],
            bounds=SECONDS,
        )
        self.job_run_seconds = Histogram(
            files,
            "job_run_seconds",
            "How long attempts ran.",
            ["queue", "kind"],
            bounds=SECONDS,
        )
        self.job_settle_seconds = Histogram(
            files,
            "job_settle_seconds",
            "From a child's outcome to its commit.",
            ["queue"],
            bounds=SECONDS,
        )
        self.job_attempts_total = Counter(
            files,
            "job_attempts_total",
            "Attempts by outcome.",
            ["queue", "kind", "outcome"],
        )
        self.webhook_deliveries_total = Counter(
            files,
            "webhook_deliveries_total",
            "Attempts of deliveries by outcome; snoozed = their endpoint was held or resting.",
            ["outcome"],
        )
        self.webhook_request_seconds = Histogram(
            files,
            "webhook_request_seconds",
            "From the look at an endpoint's name to the last byte of its answer.",
            bounds=SECONDS,
        )

    def _pool(self, files: SlotFiles) -> None:
        self.pool_slots = Gauge(
            files, "pool_slots", "Children that can run a job now (sum over slots).", ["queue"]
        )
        self.pool_busy_slots = Gauge(
            files, "pool_busy_slots", "Children that run a job now (sum over slots).", ["queue"]
        )
        self.pool_busy_seconds_total = Counter(
            files, "pool_busy_seconds_total", "Time that children ran jobs, summed.", ["queue"]
        )
        self.pool_saturated_seconds_total = Counter(
            files,
            "pool_saturated_seconds_total",
            "Time in which every child ran a job.",
            ["queue"],
        )
        self.child_starts_total = Counter(
            files, "child_starts_total", "Children started, by reason.", ["queue", "reason"]
        )
        self.child_kills_total = Counter(
            files, "child_kills_total", "Children killed by their parent.", ["queue", "reason"]
        )
        self.quarantines_total = Counter(
            files,
            "quarantines_total",
            "Kinds quarantined because their jobs killed one child after the other.",
            ["queue", "kind"],
        )
        self.child_recycles_total = Counter(
            files,
            "child_recycles_total",
            "Children replaced between jobs, for what they had reached: jobs, age, memory.",
            ["queue", "reason"],
        )
        self.child_exits_total = Counter(
            files, "child_exits_total", "Children that ended, by cause.", ["queue", "cause"]
        )

        self.child_memory_max_bytes = Gauge(
            files,
            "child_memory_max_bytes",
            "Most memory that a child was seen to hold since its process began (max over slots).",
            ["queue"],
        )

    def _drain(self, files: SlotFiles) -> None:
        self.draining = Gauge(files, "draining", "1 while the process drains.", ["role"])
        self.drain_seconds = Histogram(
            files,
            "drain_seconds",
            "How long each phase of a stop took.",
            ["role", "phase"],
            bounds=SECONDS,
        )
        self.drain_jobs_total = Counter(
            files,
            "drain_jobs_total",
            "Jobs that a stop found running, by what became of them.",
            ["queue", "result"],
        )

    def _relay(self, files: SlotFiles) -> None:
        self.relay_passes_total = Counter(
            files, "relay_passes_total", "Relay passes: full, short, empty, error.", ["result"]
        )
        self.relay_batch_size = Histogram(
            files, "relay_batch_size", "Events that a relay pass took.", bounds=ROWS
        )
        self.relay_pass_seconds = Histogram(
            files, "relay_pass_seconds", "How long a relay pass took.", bounds=SECONDS
        )
        self.relay_lag_seconds = Histogram(
            files,
            "relay_lag_seconds",
            "From an event's occurrence to its fan-out, oldest of each pass.",
            bounds=SECONDS,
        )
        self.relay_jobs_enqueued_total = Counter(
            files, "relay_jobs_enqueued_total", "Jobs that the relay enqueued."
        )
        self.relay_events_failed_total = Counter(
            files,
            "relay_events_failed_total",
            "Events whose fan-out failed (retried) or was given up (poisoned).",
            ["result"],
        )

    def _listener(self, files: SlotFiles) -> None:
        self.listener_connected = Gauge(
            files, "listener_connected", "1 while the LISTEN connection stands (min over slots)."
        )
        self.listener_reconnects_total = Counter(
            files, "listener_reconnects_total", "LISTEN connections opened after the first."
        )
        self.listener_notifications_total = Counter(
            files, "listener_notifications_total", "Notices received.", ["channel"]
        )
        self.listener_waiters = Gauge(
            files, "listener_waiters", "Callers that wait now (sum over slots).", ["channel"]
        )
        self.listener_rejected_total = Counter(
            files,
            "listener_rejected_total",
            "Callers refused because 64 others waited.",
            ["channel"],
        )
        self.listener_wait_seconds = Histogram(
            files, "listener_wait_seconds", "How long callers waited.", ["channel"], bounds=SECONDS
        )

    def _process(self, files: SlotFiles) -> None:
        # The file holds the monotonic moment of the last turn; the metrics program, which reads
        # the same clock, exports its age. A loop that is stuck cannot keep its own age true.
        self.loop_age_seconds = Gauge(
            files, "loop_age_seconds", "Seconds since the loop last turned.", ["loop"]
        )
        self.db_errors_total = Counter(
            files,
            "db_errors_total",
            "Errors of Postgres by class of SQLSTATE (none = no connection).",
            ["sqlstate_class"],
        )
        self.db_connects_total = Counter(
            files, "db_connects_total", "Connections opened to Postgres."
        )

    def turned(self, loop: str) -> None:
        """Say that a loop turned just now; call it once a turn.

        Args:
            loop: its name, of a closed set ("claims", "beat", …).
        """
        self._turns[loop] = SYSTEM.monotonic()
        self.loop_age_seconds.labels(loop).set(self._turns[loop])

    def stuck(self, seconds: float) -> list[str]:
        """Loops of this process that have not turned for so long (liveness)."""
        now = SYSTEM.monotonic()
        return sorted(loop for loop, at in self._turns.items() if now - at > seconds)

    def db_failed(self, error: WeirkeeperError) -> None:
        """Count an error of Postgres by the class of its SQLSTATE."""
        self.db_errors_total.labels(error.sqlstate[:2] or "none").inc()

    def families(self) -> list[Family[object]]:
        """Every instrument, in the order of declaration."""
        return [value for value in vars(self).values() if isinstance(value, Family)]

    def close(self) -> None:
        """Give the slot back; harmless when repeated."""
        self._files.close()
        self._lock.release()


def open_instruments(home: Path, slot: str) -> Instruments:
    """Take a slot and open its instruments.

    Args:
        home: the folder of all state.
        slot: name of the process's slot ("index", "relay", "index-2").

    Raises:
        ConfigurationError: a live process has the slot, or HOME/metrics is not ours alone.
    """
    folder = metrics_folder(home)
    lock = SlotLock(folder, slot)
    return Instruments(slot, SlotFiles(folder, slot), lock)
