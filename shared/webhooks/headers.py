"""An endpoint's own headers at rest: names can be read; values, often tokens, are sealed.

    {"X-Token": {"sealed": "01…"}}     as stored; the bytes of `sealing`, in hexadecimal

Before this: the store of endpoints, and the request of one attempt. A value that is plain text was
stored before values were sealed; it is sent as it is, and sealed with the next change or by
`weirkeeper.tidy_webhooks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import InvalidArguments
from shared.webhooks.sealing import HEADER, Sealer

MASK = "***"  # how a value is shown


def seal_headers(sealer: Sealer, headers: Mapping[str, str], owner: str) -> dict[str, Any]:
    """Headers as they are stored.

    Raises:
        InvalidArguments: a value is the mask that values are shown as.
        ConfigurationError: WEIRKEEPER_SECRET is not set.
    """
    for name, value in headers.items():
        if value == MASK:
            raise InvalidArguments(
                f"headers: {name}: expected a value; got {MASK}, which stands for one that is not "
                "shown; give all headers with their values"
            )
    return {
        name: {"sealed": sealer.seal(value, owner, HEADER).hex()} for name, value in headers.items()
    }


def open_headers(sealer: Sealer, stored: Mapping[str, Any], owner: str) -> dict[str, str]:
    """Headers as they are sent.

    Raises:
        ConfigurationError: one does not open.
    """
    return {
        name: value if isinstance(value, str) else sealer.unseal(_bytes(value), owner, HEADER)
        for name, value in stored.items()
    }


def to_be_sealed(sealer: Sealer, stored: Mapping[str, Any]) -> bool:
    """Whether one of them is plain text, or sealed with another key than the newest."""
    return any(
        isinstance(value, str) or not sealer.is_newest(_bytes(value)) for value in stored.values()
    )


def masked(stored: Mapping[str, Any]) -> dict[str, str]:
    """Headers as they are shown."""
    return dict.fromkeys(stored, MASK)


def _bytes(value: Mapping[str, str]) -> bytes:
    return bytes.fromhex(value["sealed"])
