"""Secrets at rest: sealed with a key of `WEIRKEEPER_SECRET`; who reads the database has none.

    sealer = Sealer(settings.sealing_keys)
    stored = sealer.seal(secret.reveal(), owner)      bytes, for a bytea column
    text = sealer.unseal(stored, owner)

AES-256-GCM of `cryptography`; the owner's id is authenticated, so that a row copied to another
owner does not open. Layout: 1 byte version · 4 bytes that name the key · 12
bytes nonce · sealed text. Used by the store of endpoints' secrets. Must never fall back to plain
text, and never put a secret or a key into a message.
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


class Sealer:
    """Seals and opens.

    Args:
        given: `Settings.sealing_keys`; the first seals, all open. None at all is no error yet: an
            installation without webhooks needs none.
    """

    def __init__(self, given: Sequence[str]) -> None:
        self._keys = {_named(secret): _key(secret) for secret in given}
        self._newest = _named(given[0]) if given else b""

    def seal(self, text: str, owner: str) -> bytes:
        """Seal a secret for its owner.

        Raises:
            ConfigurationError: WEIRKEEPER_SECRET is not set.
        """
        self._need()
        nonce = random_bytes(_NONCE)
        sealed = AESGCM(self._keys[self._newest]).encrypt(nonce, text.encode(), _bound(owner))
        return VERSION + self._newest + nonce + sealed

    def unseal(self, stored: bytes, owner: str) -> str:
        """Open what was sealed for this owner.

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
            return AESGCM(key).decrypt(nonce, stored[_HEAD:], _bound(owner)).decode()
        except InvalidTag:
            raise ConfigurationError.of(
                "a sealed webhook secret",
                "one that was sealed for its owner",
                "one that was changed, or copied from another owner",
                "rotate the endpoint's secret",
            ) from None

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


def _bound(owner: str) -> bytes:
    return b"weirkeeper webhook secret of " + owner.encode()


def _key(secret: str) -> bytes:
    return _derived(secret, b"weirkeeper seal", 32)


def _named(secret: str) -> bytes:
    return _derived(secret, b"weirkeeper seal name", _NAME)


def _derived(secret: str, purpose: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt=None, info=purpose).derive(secret.encode())
