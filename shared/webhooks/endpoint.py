"""What may be said of an endpoint, and the checks that need no database.

Before this: an operation's arguments. After it: the adapter of shared.webhooks.port. The rules of
the URL's host are shared.webhooks.policy's; the adapter asks whether a pattern matches a type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.config.mail import is_address
from shared.errors import InvalidArguments
from shared.webhooks.body import FORMATS
from shared.webhooks.secret import SCHEMES

ORDERINGS = ("none", "strict")
MAX_PATTERNS = 100
MAX_DESCRIPTION = 500
MAX_RATE = 6000  # requests a minute
MAX_ENDPOINTS = 100  # of one owner
MAX_OVERLAP = 7 * 86_400.0  # seconds that a rotated secret may go on signing
OVERLAP = 86_400.0
TEST = "webhook.test"  # the type of a test event

_PATTERN = re.compile(r"(\*|[a-z][a-z0-9_]*)(\.(\*|[a-z][a-z0-9_]*))*")
_CHOICES = {"format": FORMATS, "signature": SCHEMES, "ordering": ORDERINGS}


@dataclass(frozen=True, slots=True)
class Draft:
    """A new endpoint.

    Attributes:
        url: https, of a host that may be reached.
        event_types: types or globs, at least one.
        description: for people, at most 500 characters.
        headers: sent with each request beside ours.
        contact: mail address of who is told when it fails; None = nobody.
        format: standard, or cloudevents (structured mode).
        signature: v1 (HMAC-SHA256), or v1a (Ed25519).
        ordering: none, or strict: no event overtakes an older one.
        rate: requests a minute at most, 1 to 6,000; None = no limit.
        schedule: seconds before each further try; None = the default.
    """

    url: str
    event_types: tuple[str, ...]
    description: str = ""
    headers: Mapping[str, str] | None = None
    contact: str | None = None
    format: str = "standard"
    signature: str = "v1"
    ordering: str = "none"
    rate: int | None = None
    schedule: tuple[float, ...] | None = None


def check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse what an endpoint cannot have; the URL, headers and schedule have rules of their own.

    Raises:
        InvalidArguments: which, what was expected, what came.
    """
    for name, allowed in _CHOICES.items():
        if name in fields and fields[name] not in allowed:
            raise InvalidArguments(
                f"{name}: expected one of {', '.join(allowed)}; got {fields[name]!r}"
            )
    if "event_types" in fields:
        check_patterns(fields["event_types"])
    if len(fields.get("description", "")) > MAX_DESCRIPTION:
        raise InvalidArguments(
            f"description: expected at most {MAX_DESCRIPTION} characters; "
            f"got {len(fields['description'])}; shorten it"
        )
    contact = fields.get("contact")
    if contact is not None and not is_address(contact):
        raise InvalidArguments(
            "contact: expected a plain mail address (ASCII; international domains as xn--…); got "
            f"{contact[:80]!r}"
        )
    rate = fields.get("rate")
    if rate is not None and not (type(rate) is int and 1 <= rate <= MAX_RATE):
        raise InvalidArguments(
            f"rate: expected 1 to {MAX_RATE} requests a minute; got {rate!r}; "
            "with none there is no limit"
        )


def check_patterns(patterns: Sequence[str]) -> None:
    """Refuse patterns of event types that cannot be any.

    Raises:
        InvalidArguments: none, too many, or one that is no dotted words.
    """
    if not 1 <= len(patterns) <= MAX_PATTERNS:
        raise InvalidArguments(
            f"event_types: expected 1 to {MAX_PATTERNS} types or globs; got {len(patterns)}"
        )
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern):
            raise InvalidArguments(
                f"event_types: expected dotted words or *; got {pattern!r}; correct it"
            )


def check_overlap(seconds: float) -> None:
    """Refuse an overlap of secrets that is none.

    Raises:
        InvalidArguments: less than 0 s, or more than 7 days.
    """
    if not 0 <= seconds <= MAX_OVERLAP:
        raise InvalidArguments(
            f"overlap: expected 0 to {MAX_OVERLAP:g} s; got {seconds!r}; "
            f"leave it out for {OVERLAP:g}"
        )


def test_subject(endpoint_id: str) -> str:
    """Subject of a test event: the endpoint that it is for."""
    return f"webhook://{endpoint_id}"
