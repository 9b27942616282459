"""What is asked and what comes back: the data of one call, and its limits.

Before: whoever wants something outside (webhooks, suppliers, fetch). After: `client`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from shared.webhooks.times import DEADLINE

Ended = Literal["whole", "too_large", "timeout", "cut"]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request.

    Attributes:
        method: "POST".
        url: as its owner gave it; judged by the client. Its query may hold a token.
        headers: without Host and Content-Length, which the client writes.
        body: sent as it is.
    """

    method: str
    url: str = field(repr=False)
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a call may take. The defaults are those of webhooks.

    Attributes:
        seconds: from the first look at the name to the last byte.
        wire_bytes: that may come in, encryption and all heads included.
        body_bytes: of the answer's body that are kept.
        body_seconds: for the body, once the head is in: what it says is known by then.
    """

    seconds: float = DEADLINE
    wire_bytes: int = 256 * 1024
    body_bytes: int = 16 * 1024
    body_seconds: float = 2.0


WEBHOOK = Limits()


@dataclass(frozen=True, slots=True)
class Exchange:
    """What became of a call.

    Attributes:
        status: of the answer; None = none came.
        error: why none came, a code of shared.webhooks.codes; "" = one came.
        rule: of shared.webhooks.denied, when `error` is "blocked_target".
        told: `error` in words, for the owner of the URL; tells no address.
        by_url: that rule is about the URL itself: no answer of a name server would change it.
        hidden: more of it for the operator's log alone (addresses, errors of libraries).
        times: seconds by phase (dns, connect, tls, write, ttfb, body); only those that began.
        headers: at most 64 and 8 KiB, as they came, with secrets masked.
        retry_after: the header as it came; "" = there was none.
        body: raw bytes of the answer, never decoded, at most `Limits.body_bytes`.
        ended: how the body ended: "whole", or why the rest is missing.
        peer: address and port that answered, for the operator alone; "" = there was no connection.
    """

    status: int | None
    error: str = ""
    rule: str = ""
    told: str = ""
    by_url: bool = False
    hidden: str = field(default="", repr=False)
    times: Mapping[str, float] = field(default_factory=dict)
    headers: tuple[tuple[str, str], ...] = ()
    retry_after: str = ""
    body: bytes = field(default=b"", repr=False)
    ended: Ended = "whole"
    peer: str = field(default="", repr=False)

    @property
    def truncated(self) -> bool:
        """Whether the body is not all that was to come."""
        return self.ended != "whole"

    def header(self, name: str) -> str:
        """The first header of this name (lower case), as kept; "" = none."""
        return next((value for key, value in self.headers if key == name), "")
