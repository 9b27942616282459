"""httpcore's network: resolve once, judge every address, connect to a judged one.

Stands between httpcore, which knows the host by name (for Host, SNI and certificate), and `race`,
which knows addresses only. There is no second look at the name server after the judgement.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpcore

from shared.services.calls import Overdue
from shared.services.resolver import NameUnresolved, Resolver
from shared.webhooks.denied import Denied
from shared.webhooks.policy import Policy
from shared.webhooks.urls import Target
from workers.sideeffects.http.attempt import Attempt, Failed
from workers.sideeffects.http.race import connect
from workers.sideeffects.http.streams import PlainStream
from workers.sideeffects.http.wire import Wire


class GuardedBackend(httpcore.NetworkBackend):
    """The network as one attempt may use it."""

    def __init__(
        self, target: Target, attempt: Attempt, policy: Policy, resolver: Resolver
    ) -> None:
        self._target = target
        self._attempt = attempt
        self._policy = policy
        self._resolver = resolver

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the one host that was judged.

        Raises:
            Failed: dns_…, connect_…, or a rule forbids an address.
        """
        del timeout, local_address, socket_options
        if (host, port) != (self._target.host, self._target.port):
            # Two parsers read the URL differently: the judged one is not the one to be called.
            raise Failed("blocked_target", f"{host}:{port} was never judged", rule="url_parse")
        self._attempt.enter("dns")
        addresses = self._addresses()
        self._attempt.enter("connect")
        connected = connect(addresses, port, self._attempt)
        self._attempt.enter("write" if self._target.scheme == "http" else "tls")
        return PlainStream(Wire(connected, self._attempt))

    def _addresses(self) -> tuple[str, ...]:
        if self._target.literal is not None:  # judged with the URL
            return (str(self._target.literal),)
        trusted = self._policy.trusts(self._target)
        try:
            found = self._resolver.resolve(
                self._target.host, self._attempt.remaining(), as_is=trusted
            )
            return self._policy.check_addresses(self._target, found)
        except Overdue as error:
            raise Failed("dns_timeout") from error
        except NameUnresolved as error:
            raise Failed("dns_not_found" if error.absent else "dns_failed", str(error)) from error
        except Denied as denied:
            if denied.rule == "no_address":
                raise Failed("dns_not_found") from denied
            raise Failed("blocked_target", denied.address, denied.rule, denied.why) from denied
