"""The request of one attempt: the kept bytes, signed anew with every live secret.

Before this: a lease, with what was read under it. After it: the guarded client. Secrets and
headers are opened here and nowhere else, and live as long as this call.
"""

from __future__ import annotations

from datetime import datetime

from shared.config.settings import Settings
from shared.release import version
from shared.webhooks.body import request_headers
from shared.webhooks.headers import open_headers
from shared.webhooks.policy import Policy
from shared.webhooks.port import Lease
from shared.webhooks.sealing import Sealer
from shared.webhooks.secret import parse_secret
from shared.webhooks.signing import signature
from workers.handlers.prebuilt import prebuilt
from workers.sideeffects.http.client import GuardedClient
from workers.sideeffects.http.exchange import WEBHOOK, Limits, Outgoing


def prepare(lease: Lease, now: datetime) -> Outgoing:
    """The request as it is to be sent.

    Args:
        lease: of the delivery.
        now: moment of this attempt; goes into `webhook-timestamp`.

    Raises:
        ConfigurationError: the secrets cannot be opened.
    """
    keys = [parse_secret(_sealer().unseal(sealed, lease.owner_id)) for sealed in lease.sealed]
    timestamp = int(now.timestamp())
    headers = request_headers(
        lease.event_id,
        timestamp,
        signature(keys, lease.event_id, timestamp, lease.body),
        form=lease.format,
        version=_version(),
        custom=open_headers(_sealer(), lease.headers, lease.owner_id),
    )
    return Outgoing("POST", lease.url, headers, lease.body)


@prebuilt
def caller() -> tuple[GuardedClient, Limits]:
    """The client of this child, and how much a call may take."""
    outbound = _settings().outbound
    return GuardedClient(Policy(outbound), ca_file=outbound.ca_file), WEBHOOK


@prebuilt
def discards() -> bool:
    """Whether a 4xx of no meaning of its own ends a delivery at once."""
    return _settings().discard_client_errors


@prebuilt
def _version() -> str:
    return version("weirkeeper")  # 0.7 ms: a file is read and parsed


@prebuilt
def _sealer() -> Sealer:
    return Sealer(_settings().sealing_keys)


@prebuilt
def _settings() -> Settings:
    return Settings.load()
