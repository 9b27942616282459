"""Event types, as data: what may be recorded at all.

Read by the recorder (an undeclared type is refused), by subscriptions (a glob must match one) and
by the catalog that tells the database.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import ConfigurationError
from shared.jobs.kinds import MAX_NAME, NAME

EXPOSURES = ("internal", "webhook")


@dataclass(frozen=True, slots=True)
class EventType:
    """One type of event.

    Attributes:
        name: dotted lower-case words, at most 63 characters.
        description: what happened, one sentence.
        subject: what the subject of such an event names.
        exposure: "internal" (default) or "webhook".
    """

    name: str
    description: str
    subject: str
    exposure: str = "internal"

    def __post_init__(self) -> None:
        """Refuse a declaration that cannot work."""
        name = self.name
        if not isinstance(name, str) or len(name) > MAX_NAME or not NAME.fullmatch(name):
            raise ConfigurationError.of(
                "event type",
                "dotted lower-case words of at most 63 characters",
                self.name,
                "rename the event type",
            )
        for field in ("description", "subject"):
            given = getattr(self, field)
            if not isinstance(given, str) or not given.strip():
                raise ConfigurationError.of(
                    f"event type {self.name}: {field}", "a few words", given, "say what it means"
                )
        if self.exposure not in EXPOSURES:
            raise ConfigurationError.of(
                f"event type {self.name}: exposure",
                "internal or webhook",
                self.exposure,
                "choose one of them",
            )
