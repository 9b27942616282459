"""What may be recorded, as far as Python can see: used by every adapter of Recorder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jsonvalue import check_text, encode_object

MAX_OWNER = 200  # characters, of the trace as well
MAX_SUBJECT = 2048


def checked_data(
    event_type: str,
    owner_id: str | None,
    subject: str,
    data: Mapping[str, Any] | None,
    trace: str | None,
) -> str:
    """Check an event before it could abort the caller's transaction; see port.Recorder.record.

    Returns:
        The JSON text of its data; any mapping is as good as a dict.

    Raises:
        InvalidArguments: something that cannot be stored.
    """
    check_text(event_type, "event type", MAX_SUBJECT)
    check_text(owner_id, f"owner_id of event {event_type}", MAX_OWNER)
    check_text(subject, f"subject of event {event_type}", MAX_SUBJECT)
    check_text(trace, f"trace of event {event_type}", MAX_OWNER)
    given = {} if data is None else data
    return encode_object(
        dict(given) if isinstance(given, Mapping) else given, f"data of event {event_type}"
    )
