"""Subscriptions, as data: which events become jobs of which kind.

Read by the catalog, which expands types × subscriptions into the table that the relay's one
statement joins. The job's args are `{"event_id": …, "subject": …}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from shared.backoff import DEFAULT, Backoff
from shared.errors import ConfigurationError
from shared.jobs.kinds import Kind
from shared.jobs.limits import Limits
from shared.jobs.outages import Outage

_GLOB = re.compile(r"(\*|[a-z][a-z0-9_]*)(\.(\*|[a-z][a-z0-9_]*))*")


def is_glob(text: object) -> bool:
    """Whether a value is a glob over event types: dotted segments, each a word or `*`."""
    return isinstance(text, str) and bool(_GLOB.fullmatch(text))


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscriber.

    Attributes:
        name: also the name of the job kind.
        types: globs over event types, at least one; each must match a declared type.
        queue: where its jobs run.
        handler: "module:function", called as `function(ctx, args, event)`; idempotent. Empty when
            the queue names a command, which is given the event's id.
        coalesce: per pass and subject, only the latest event becomes a job.
        exposed: only types that may leave the installation (exposure "webhook").
        endpoints: only events whose owner has a webhook endpoint.
        max_attempts, timeout, backoff, outage, limits: as of a Kind.
    """

    name: str
    types: tuple[str, ...]
    queue: str
    handler: str = ""
    coalesce: bool = False
    exposed: bool = False
    endpoints: bool = False
    max_attempts: int = 10
    timeout: float | None = None
    backoff: Backoff = DEFAULT
    outage: Outage | None = None
    limits: Limits | None = None

    def __post_init__(self) -> None:
        """Refuse a declaration that cannot work."""
        if not isinstance(self.types, tuple) or not self.types:
            raise ConfigurationError.of(
                f"subscription {self.name}: types",
                "a non-empty tuple of globs",
                self.types,
                "name the event types that it wants",
            )
        for glob in self.types:
            if not is_glob(glob):
                raise ConfigurationError.of(
                    f"subscription {self.name}: types",
                    "dotted words or *",
                    glob,
                    "correct the glob",
                )

    def kind(self) -> Kind:
        """The job kind that this subscription is run as."""
        return Kind(
            name=self.name,
            queue=self.queue,
            handler=self.handler,
            max_attempts=self.max_attempts,
            timeout=self.timeout,
            backoff=self.backoff,
            outage=self.outage,
            limits=self.limits,
        )
