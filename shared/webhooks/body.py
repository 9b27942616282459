"""What is sent: the event as JSON bytes, the same at each attempt, and the headers around them.

Stands before the delivery. The bytes are made once and kept; a signature is over exactly them.
CloudEvents are sent in structured mode only: in binary mode the `ce-*` headers would stand outside
of the signature.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shared.errors import InvalidArguments

Format = Literal["standard", "cloudevents"]
FORMATS: tuple[Format, ...] = ("standard", "cloudevents")
CONTENT_TYPES: Mapping[str, str] = {
    "standard": "application/json",
    "cloudevents": "application/cloudevents+json; charset=utf-8",
}
SOURCE = "weirkeeper"  # CloudEvents asks for one: a URI reference
MOST_HEADERS = 32
LONGEST_VALUE = 4_096
# A string, which is kept, or space between tokens. Possessive: no text makes it slow.
_SPACE = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")|[ \t\r\n]++')
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
SYSTEM_NAMES = frozenset(
    (
        "host",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "user-agent",
        "accept-encoding",
        "cookie",
        "date",
    )
)
SYSTEM_PREFIXES = ("webhook-", "content-", "proxy-", "ce-")


@dataclass(frozen=True, slots=True)
class Message:
    """An event as receivers get it.

    Attributes:
        id: of the event, without a dot; goes into `webhook-id`, too.
        type: "order.paid".
        subject: "" = none.
        occurred_at: RFC 3339, in UTC.
        data: text of a JSON object as the database spells it (`data::text`): what Python reads and
            writes again would lose digits of long numbers.
    """

    id: str
    type: str
    subject: str
    occurred_at: str
    data: str


def encode(message: Message, form: Format = "standard", source: str = SOURCE) -> bytes:
    """The body: compact UTF-8 JSON, keys of the envelope in a fixed order.

    Args:
        message: the event.
        form: of the endpoint.
        source: of CloudEvents: a URI reference that names this installation.
    """
    head = _cloudevents_head(message, source) if form == "cloudevents" else _standard_head(message)
    fields = [f"{_text(name)}:{_text(value)}" for name, value in head.items()]
    return ("{" + ",".join([*fields, f'"data":{compact(message.data)}']) + "}").encode()


def compact(text: str) -> str:
    """A JSON text without the space between its tokens; everything else stays as it is spelt."""
    return _SPACE.sub(lambda found: found[1] or "", text)


def _standard_head(message: Message) -> dict[str, str | None]:
    return {
        "id": message.id,
        "type": message.type,
        "subject": message.subject or None,
        "occurred_at": message.occurred_at,
    }


def _cloudevents_head(message: Message, source: str) -> dict[str, str | None]:
    subject = {"subject": message.subject} if message.subject else {}  # empty is not allowed
    return {
        "specversion": "1.0",
        "id": message.id,
        "source": source,
        "type": message.type,
        **subject,
        "time": message.occurred_at,
        "datacontenttype": "application/json",
    }


def _text(value: str | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def request_headers(  # noqa: PLR0913  (each is one header's content)
    message_id: str,
    timestamp: int,
    signed: str,
    *,
    form: Format,
    version: str,
    custom: Mapping[str, str],
) -> list[tuple[str, str]]:
    """The headers of one attempt, but Host and Content-Length, which the client writes.

    Args:
        message_id: the event's id.
        timestamp: unix seconds of this attempt.
        signed: from `signing.signature`.
        form: of the endpoint.
        version: of Weirkeeper, for User-Agent.
        custom: the endpoint's own, refused when a system name is among them.

    Raises:
        InvalidArguments: see `check_custom`.
    """
    check_custom(custom)
    return [
        ("content-type", CONTENT_TYPES[form]),
        ("user-agent", f"weirkeeper/{version}"),
        ("accept-encoding", "identity"),
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", signed),
        *custom.items(),
    ]


def check_custom(custom: Mapping[str, str]) -> None:
    """See that an endpoint's own headers can be sent beside ours.

    Raises:
        InvalidArguments: too many, a name that is ours or no name, one name twice, a value that is
            not visible ASCII. Values are never told: they are often secrets.
    """
    if len(custom) > MOST_HEADERS:
        raise InvalidArguments(f"headers: expected at most {MOST_HEADERS}; got {len(custom)}")
    seen: set[str] = set()
    for name, value in custom.items():
        if not _NAME.fullmatch(name):
            raise InvalidArguments(f"headers: expected a header's name; got {name[:40]!r}")
        if is_system(name):
            raise InvalidArguments(f"headers: {name} is written by Weirkeeper; leave it out")
        if name.lower() in seen:
            raise InvalidArguments(f"headers: {name} stands there twice")
        seen.add(name.lower())
        if len(value) > LONGEST_VALUE or not _VALUE.fullmatch(value):
            raise InvalidArguments(
                f"headers: {name}: expected 1 to {LONGEST_VALUE} visible ASCII characters (with "
                "spaces between them); got something else"
            )


def is_system(name: str) -> bool:
    """Whether a header is Weirkeeper's own, or would change what the others mean."""
    lower = name.lower()
    return lower in SYSTEM_NAMES or lower.startswith(SYSTEM_PREFIXES)
