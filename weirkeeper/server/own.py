"""What a server with its own Postgres sets by itself, where its person set nothing.

Handed down to its programs, and published for commands in other shells (shared.config.home). A
server on a database of somebody's own sets nothing: what a deployment may call, and what it seals
with, is its operator's word.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from shared.config.env import Environment
from shared.config.loopback import RECEIVER
from weirkeeper.server.private import write_private

FILE = "webhook_secret"  # in the home, for as long as its data
LOCAL = {"WEIRKEEPER_OUTBOUND_HTTP": "allowed", "WEIRKEEPER_OUTBOUND_ALLOW": RECEIVER}


def own_settings(home: Path, *, receiver: bool) -> dict[str, str]:
    """The settings, by name.

    Args:
        home: WEIRKEEPER_HOME, which is there.
        receiver: webhooks may be sent to a receiver on this machine, if the environment says
            nothing of what may be called.
    """
    environment = Environment()
    found = {}
    if not environment.is_set("WEIRKEEPER_SECRET"):
        found["WEIRKEEPER_SECRET"] = _secret(home / FILE)
    if receiver and not environment.is_set("WEIRKEEPER_OUTBOUND_"):
        found |= LOCAL
    return found


def _secret(file: Path) -> str:
    """The one that was made at the first start."""
    if not file.exists():
        write_private(file, secrets.token_urlsafe(32) + "\n")
    return file.read_text().strip()
