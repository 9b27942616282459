"""What the relay counts of itself: passes, batches, lag, jobs, failures (docs/metrics.md)."""

from __future__ import annotations

from shared.events.outbox import FannedOut
from shared.telemetry.instruments import Instruments


class Tally:
    """The relay's instruments, in its own words."""

    def __init__(self, instruments: Instruments) -> None:
        self._of = instruments

    def turning(self) -> None:
        """The loop turns."""
        self._of.turned("relay")

    def passed(self, done: FannedOut, seconds: float) -> None:
        """A pass took `seconds`."""
        result = "full" if done.full else "short" if done.rows else "empty"
        self._of.relay_passes_total.labels(result).inc()
        self._of.relay_pass_seconds.observe(seconds)
        if done.rows:
            self._of.relay_batch_size.observe(done.rows)
            self._of.relay_lag_seconds.observe(done.oldest_age)
            self._of.relay_jobs_enqueued_total.labels().inc(done.jobs)

    def broke(self) -> None:
        """A pass failed as a whole."""
        self._of.relay_passes_total.labels("error").inc()

    def failed(self, *, poisoned: bool) -> None:
        """The fan-out of one event failed, for now or for good."""
        result = "poisoned" if poisoned else "retried"
        self._of.relay_events_failed_total.labels(result).inc()
