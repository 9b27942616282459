"""The times of a delivery fit into one another: request, job, lease. Checked at every start.

Asked by `shared.app.App.check`. A request that could outlive its job would be killed instead of
judged, and a job that could outlive its lease would let a second request start beside it.
"""

from __future__ import annotations

from shared.errors import ConfigurationError

DEADLINE = 10.0  # seconds that a request may take, the look at the name server included
LEASE = 20.0  # seconds that an endpoint is held for one request; job timeout (15) + 5
SETTLE = 3.0  # seconds of the job that are kept for lease and settle
APART = 5.0  # seconds of the lease that are left when the job was ended


def check_times(job: float, request: float = DEADLINE, lease: float = LEASE) -> None:
    """See that request + 3 ≤ job ≤ lease - 5, all in seconds.

    Args:
        job: that a job of `webhook.deliver` may run.
        request: that a request may take.
        lease: that an endpoint is held for one request.

    Raises:
        ConfigurationError: with the numbers.
    """
    if request + SETTLE <= job <= lease - APART:
        return
    raise ConfigurationError.of(
        "kind webhook.deliver: timeout",
        f"request {request:g} s + {SETTLE:g} ≤ timeout ≤ lease {lease:g} s - {APART:g}, which is "
        f"{request + SETTLE:g} to {lease - APART:g} s",
        f"{job:g} s",
        "a request must end before its job, and the job before another may send",
    )
