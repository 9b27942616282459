"""Secrets of webhook endpoints: made, read, and shown only when that is asked for by name.

    whsec_ + base64 of 16 to 64 bytes       symmetric (v1); ours have 32
    whsk_  + base64 of seed and public key asymmetric (v1a), ours to sign with
    whpk_  + base64 of the public key      asymmetric (v1a), the receiver's to verify with

Used by `signing`, which signs and verifies, and by whatever stores them sealed (`sealing`). Must
never be put into a log, an error, args or a page: `str` and `repr` show stars.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shared.backoff import random_bytes
from shared.errors import InvalidArguments

Scheme = Literal["v1", "v1a"]
SCHEMES: tuple[Scheme, ...] = ("v1", "v1a")
SYMMETRIC, PRIVATE, PUBLIC = "whsec_", "whsk_", "whpk_"
_BYTES = {SYMMETRIC: range(16, 65), PRIVATE: range(64, 65), PUBLIC: range(32, 33)}


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret.

    Attributes:
        prefix: whsec_, whsk_ or whpk_.
        key: the decoded bytes behind it.
    """

    prefix: str
    key: bytes = field(repr=False)

    @property
    def scheme(self) -> Scheme:
        """Which signatures it is for."""
        return "v1" if self.prefix == SYMMETRIC else "v1a"

    def reveal(self) -> str:
        """The secret itself, to be shown once, or sealed."""
        return self.prefix + base64.b64encode(self.key).decode()

    def for_receiver(self) -> str:
        """What the receiver verifies with: the secret itself (v1), or the public key (v1a)."""
        if self.prefix == PRIVATE:
            return PUBLIC + base64.b64encode(self.key[32:]).decode()
        return self.reveal()

    def __str__(self) -> str:
        return f"{self.prefix}***"


def new_secret(scheme: Scheme = "v1") -> Secret:
    """Make one from 32 random bytes."""
    seed = random_bytes(32)
    return Secret(SYMMETRIC, seed) if scheme == "v1" else Secret(PRIVATE, seed + _public(seed))


def parse_secret(text: str) -> Secret:
    """Read a secret.

    Args:
        text: as an endpoint's owner keeps it; space around it does not matter.

    Raises:
        InvalidArguments: it is none; the message does not contain it.
    """
    text = text.strip()
    prefix = next((p for p in _BYTES if text.startswith(p)), "")
    if not prefix:
        raise InvalidArguments(
            "secret: expected one that begins with whsec_, whsk_ or whpk_; got something else"
        )
    try:
        key = base64.b64decode(text.removeprefix(prefix), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArguments(
            f"secret: expected base64 behind {prefix}; got something else; copy it whole"
        ) from None  # the cause would show it
    if len(key) not in _BYTES[prefix]:
        raise InvalidArguments(
            f"secret: expected {_told(_BYTES[prefix])} bytes behind {prefix}; got {len(key)}"
        )
    if prefix == PRIVATE and _public(key[:32]) != key[32:]:
        raise InvalidArguments("secret: expected the public key of the seed before it")
    return Secret(prefix, key)


def _public(seed: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def _told(allowed: range) -> str:
    low, high = allowed.start, allowed.stop - 1
    return str(low) if low == high else f"{low} to {high}"
