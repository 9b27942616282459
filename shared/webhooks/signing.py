"""Signatures of Standard Webhooks: made for each attempt, and checked as a receiver checks them.

What is signed is `id.timestamp.body`. v1 is base64 of HMAC-SHA256, v1a base64 of Ed25519; during a
rotation a request carries one signature per live secret, newest first, separated by one space.
Stands before the delivery (`signature`) and before `verification`, which says what is wrong.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from shared.errors import InvalidArguments
from shared.webhooks.secret import PRIVATE, PUBLIC, Secret

MOST_SECRETS = 5  # alive at once for one endpoint
# No dot: (a.1, 2, x) and (a, 1, 2.x) would have the same signature.
_ID = re.compile(r"[!-\-/-~]{1,256}")


def signature(live: Sequence[Secret], message_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature` for one attempt.

    Args:
        live: every secret of the endpoint that is alive, newest first, 1 … 5.
        message_id: the event's id; the same at each attempt.
        timestamp: unix seconds of this attempt.
        body: the bytes as they are sent.

    Raises:
        InvalidArguments: no secret or too many, one that cannot sign, an id with a dot or with
            something that is not visible ASCII.
    """
    if not 1 <= len(live) <= MOST_SECRETS:
        raise InvalidArguments(f"secrets: expected 1 to {MOST_SECRETS}; got {len(live)}")
    message = signed_bytes(message_id, timestamp, body)
    return " ".join(sign(secret, message) for secret in live)


def signed_bytes(message_id: str, timestamp: int, body: bytes) -> bytes:
    """What a signature is over.

    Raises:
        InvalidArguments: an id that would make it ambiguous.
    """
    if not _ID.fullmatch(message_id):
        raise InvalidArguments(f"id: expected visible ASCII without a dot; got {message_id[:40]!r}")
    return b"%s.%d.%s" % (message_id.encode(), timestamp, body)


def sign(secret: Secret, message: bytes) -> str:
    """One signature with its scheme: `v1,…` or `v1a,…`.

    Raises:
        InvalidArguments: a public key cannot sign.
    """
    if secret.prefix == PUBLIC:
        raise InvalidArguments("secret: expected whsec_ or whsk_; a whpk_ can only verify")
    if secret.prefix == PRIVATE:
        made = Ed25519PrivateKey.from_private_bytes(secret.key[:32]).sign(message)
    else:
        made = hmac.digest(secret.key, message, hashlib.sha256)
    return f"{secret.scheme},{base64.b64encode(made).decode()}"


def matches(secret: Secret, message: bytes, given: str) -> bool:
    """Whether one signature (`v1,…`) is this secret's over this message; in constant time."""
    scheme, _, text = given.partition(",")
    if scheme != secret.scheme:
        return False
    if secret.scheme == "v1":
        expected = hmac.digest(secret.key, message, hashlib.sha256)
        return hmac.compare_digest(base64.b64encode(expected), text.encode())
    public = secret.key[32:] if secret.prefix == PRIVATE else secret.key
    try:
        found = base64.b64decode(text, validate=True)
        Ed25519PublicKey.from_public_bytes(public).verify(found, message)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True
