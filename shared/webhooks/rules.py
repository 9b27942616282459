"""The rules of an installation, as one value that the store of endpoints asks.

Made by whoever builds the adapter (a program's main, the command line's desk) from the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.config.settings import Settings
from shared.errors import InvalidArguments
from shared.webhooks.body import check_custom
from shared.webhooks.denied import Denied
from shared.webhooks.headers import seal_headers
from shared.webhooks.policy import Policy
from shared.webhooks.schedule import own_schedule
from shared.webhooks.sealing import Sealer
from shared.webhooks.secret import Scheme, Secret, new_secret


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be stored, and how secrets are.

    Attributes:
        check_url: refuses a URL with the rule that it breaks (InvalidArguments).
        check_headers: refuses headers that are ours, or none.
        check_schedule: refuses delays that are none.
        new_secret: makes one for a scheme.
        seal: (secret, owner) → what is stored.
        seal_headers: (headers, owner) → what is stored.
    """

    check_url: Callable[[str], None]
    check_headers: Callable[[Mapping[str, str]], None]
    check_schedule: Callable[[Sequence[float]], object]
    new_secret: Callable[[Scheme], Secret]
    seal: Callable[[str, str], bytes]
    seal_headers: Callable[[Mapping[str, str], str], dict[str, Any]]


def rules_of(policy: Policy, sealer: Sealer) -> Rules:
    """The rules that a policy and a sealer make."""

    def check_url(url: str) -> None:
        try:
            policy.check_url(url)
        except Denied as denied:
            raise InvalidArguments(f"url: {denied}") from denied

    def sealed(headers: Mapping[str, str], owner: str) -> dict[str, Any]:
        return seal_headers(sealer, headers, owner)

    return Rules(check_url, check_custom, own_schedule, new_secret, sealer.seal, sealed)


def rules(settings: Settings) -> Rules:
    """The rules that the settings make."""
    return rules_of(Policy(settings.outbound), Sealer(settings.sealing_keys))
