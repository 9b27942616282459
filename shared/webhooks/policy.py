"""What may be called: the rules against being sent to the inside (SSRF), as one verdict.

    target = policy.check_url(url)                     at create, at update, before each attempt
    checked = policy.check_addresses(target, found)    each time that the name has been resolved

Stands before whatever calls out (`workers.sideeffects.http`), which connects to nothing but what
`check_addresses` returned. The order: the rules of spelling (`urls`) are for everybody; then the
operator's deny list, then his allow list, then the built-in rules. Resolves nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.config.outbound import Hosts, Outbound
from shared.webhooks.addresses import Address, embedded, is_mapped, parse, refused
from shared.webhooks.denied import Denied
from shared.webhooks.urls import Target, take_apart

# RFC 6761, 6762 with its appendix G, 7686, 8375, 9476, and ICANN's name for private use.
SPECIAL_NAMES = frozenset(
    (
        "alt",
        "arpa",
        "corp",
        "example",
        "home",
        "internal",
        "intranet",
        "invalid",
        "lan",
        "local",
        "localdomain",
        "localhost",
        "onion",
        "private",
        "test",
    )
)


class Policy:
    """The rules of one installation.

    Args:
        outbound: the operator's word (`Settings.outbound`); the default is the strictest.
    """

    def __init__(self, outbound: Outbound | None = None) -> None:
        self._outbound = outbound or Outbound()

    def check_url(self, url: str) -> Target:
        """Judge a URL without resolving its name.

        Args:
            url: as its owner gave it.

        Returns:
            Its parts. A host that is an address has been judged, too.

        Raises:
            Denied: a rule forbids it; names which.
        """
        target = take_apart(url)
        if target.scheme == "http" and not self._plain(target):
            listed = self._outbound.http == "allowed"
            what = "but what the operator lists over plain http" if listed else "else"
            raise Denied("scheme", f"expected https://; this installation calls nothing {what}")
        if self._outbound.ports and target.port not in self._outbound.ports:
            allowed = ", ".join(map(str, sorted(self._outbound.ports)))
            raise Denied("port", f"expected one of the ports {allowed}; got {target.port}")
        if target.literal is not None:
            self._check_address(target.literal, trusted=False, told=str(target.literal))
        else:
            self._check_name(target.host)
        return target

    def trusts(self, target: Target) -> bool:
        """Whether the operator's allow list names this very host (and his deny list does not)."""
        return target.host in self._outbound.allow.names

    def check_addresses(self, target: Target, addresses: Sequence[str]) -> tuple[str, ...]:
        """Judge everything that a name resolved to: one bad address refuses the whole answer.

        Args:
            target: from `check_url`.
            addresses: all that the resolver found, as text.

        Returns:
            The same addresses, each once, in the resolver's order: the only ones to connect to.

        Raises:
            Denied: no_address, ip or denied. The address is told in `Denied.address` alone.
        """
        if not addresses:
            raise Denied("no_address", "the name has no address")
        checked: dict[str, None] = {}
        for text in addresses:
            address = parse(text)
            if address is None:
                raise Denied("ip", "the name resolves to something that is no plain address", text)
            self._check_address(address, trusted=self.trusts(target), told="")
            checked[str(address)] = None
        return tuple(checked)

    def _plain(self, target: Target) -> bool:
        """Whether it may be called without TLS."""
        if self._outbound.http == "allowed":
            literal = target.literal
            listed = literal is not None and _within(self._outbound.allow, literal)
            return listed or self.trusts(target)
        return self._outbound.http == "yes"

    def _check_name(self, name: str) -> None:
        if name in self._outbound.deny.names:
            raise Denied("denied", "the operator's list forbids this host")
        if name in self._outbound.allow.names:
            return
        labels = name.split(".")
        if len(labels) < 2:
            raise Denied(
                "single_label", "expected a full name with a dot, such as hooks.example.org"
            )
        if labels[-1] in SPECIAL_NAMES:
            raise Denied("special_name", f"names that end in .{labels[-1]} are not of the internet")

    def _check_address(self, address: Address, *, trusted: bool, told: str) -> None:
        """Judge one address. `told`: how the owner may be told of it; "" = not at all."""
        what = told or "an address of this name"
        if self._on(self._outbound.deny, address):
            raise Denied("denied", f"the operator's list forbids {what}", str(address))
        if is_mapped(address):
            raise Denied("ip", f"{what} is an IPv4 address in disguise", str(address))
        if trusted or _within(self._outbound.allow, address):
            return
        why = refused(address, nat64=self._outbound.nat64)
        if why:
            reason = f"{what} is not of the open internet"
            raise Denied("ip", f"{reason} ({why})" if told else reason, str(address))

    def _on(self, hosts: Hosts, address: Address) -> bool:
        """Whether a list names an address, or the IPv4 address that it leads to."""
        inner = embedded(address)
        return _within(hosts, address) or (inner is not None and _within(hosts, inner))


def _within(hosts: Hosts, address: Address) -> bool:
    return any(address in network for network in hosts.networks)
