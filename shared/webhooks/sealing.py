"""Secrets and headers at rest: sealed with a key of `WEIRKEEPER_SECRET`, not in the database.

    sealer = Sealer(settings.sealing_keys)
    stored = sealer.seal(secret.reveal(), owner)      bytes, for a bytea column
    text = sealer.unseal(stored, owner)

AES-256-GCM of `cryptography`. The owner's id is authenticated, so that a row copied to another
owner does not open; so is what it is, so that a secret put where headers stand is not sent. Layout:
1 byte version · 4 bytes that name the key · 12 bytes nonce · sealed text. Used by the
store of endpoints. Must never fall back to plain text, nor tell a secret or a key.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from shared.backoff import random_bytes
from shared.errors import ConfigurationError

VERSION = b"\x01"
_NAME, _NONCE = 4, 12
_HEAD = len(VERSION) + _NAME + _NONCE
SETTING = "WEIRKEEPER_SECRET"
SECRET, HEADER = "secret", "header"  # what is sealed


class Sealer:
    """Seals and opens.

    Args:
        given: `Settings.sealing_keys`; the first seals, all open. None at all is no error yet: an
            installation without webhooks needs none.
    """

    def __init__(self, given: Sequence[str]) -> None:
        self._keys = {_named(secret): _key(secret) for secret in given}
        self._newest = _named(given[0]) if given else b""

    def seal(self, text: str, owner: str, what: str = SECRET) -> bytes:
        """Seal a text for its owner.

        Args:
            text: to be sealed.
            owner: whose.
            what: it is; opens as nothing else.

        Raises:
            ConfigurationError: WEIRKEEPER_SECRET is not set.
        """
        self._need()
        nonce = random_bytes(_NONCE)
        sealed = AESGCM(self._keys[self._newest]).encrypt(nonce, text.encode(), _bound(owner, what))
        return VERSION + self._newest + nonce + sealed

    def unseal(self, stored: bytes, owner: str, what: str = SECRET) -> str:
        """Open what was sealed for this owner, as what it is.

        Raises:
            ConfigurationError: WEIRKEEPER_SECRET is not set, or has not the key that sealed it; or
                it was sealed for somebody else, or damaged.
        """
        self._need()
        key = self._keys.get(stored[len(VERSION) : len(VERSION) + _NAME])
        if stored[: len(VERSION)] != VERSION or key is None:
            raise ConfigurationError.of(
                SETTING,
                "the secret that the stored webhook secrets were sealed with",
                "another one",
                f"put the old one behind the new, separated by a comma ({SETTING}=new,old), or "
                "rotate the secrets of all endpoints",
            )
        nonce = stored[_HEAD - _NONCE : _HEAD]
        try:
            return AESGCM(key).decrypt(nonce, stored[_HEAD:], _bound(owner, what)).decode()
        except InvalidTag:
            raise ConfigurationError.of(
                f"a sealed webhook {what}",
                "one that was sealed for its owner",
                "one that was changed, or copied from another owner",
                f"give the endpoint a new {what}",
            ) from None

    @property
    def can_seal(self) -> bool:
        """Whether there is a key at all."""
        return bool(self._keys)

    def is_newest(self, stored: bytes) -> bool:
        """Whether the first key sealed it."""
        return stored.startswith(VERSION + self._newest)

    @property
    def older(self) -> tuple[bytes, ...]:
        """How what other keys than the first have sealed begins (5 bytes): to be sealed anew."""
        return tuple(VERSION + name for name in self._keys if name != self._newest)

    def _need(self) -> None:
        if not self._keys:
            raise ConfigurationError.of(
                SETTING,
                "a secret of at least 32 characters, since webhook secrets are stored sealed",
                "",
                f'set {SETTING}="$(openssl rand -base64 32)" for all processes, and keep it',
            )


def _bound(owner: str, what: str) -> bytes:
    return f"weirkeeper webhook {what} of {owner}".encode()


def _key(secret: str) -> bytes:
    return _derived(secret, b"weirkeeper seal", 32)


def _named(secret: str) -> bytes:
    return _derived(secret, b"weirkeeper seal name", _NAME)


def _derived(secret: str, purpose: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt=None, info=purpose).derive(secret.encode())
