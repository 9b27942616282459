"""The one way in which a call outside is refused by a rule: an error that names it."""

from __future__ import annotations

from shared.errors import WeirkeeperError

RULES = {
    "url_length": "longer than 2,048 characters",
    "url_chars": "a character that is not visible ASCII",
    "url_backslash": "a backslash",
    "scheme": "not https (or http, where the operator allows it)",
    "fragment": "a fragment",
    "userinfo": "a user or password",
    "url_parse": "host or port cannot be read in one way only",
    "no_host": "no host",
    "port": "a port that is not called",
    "numeric_host": "a number that some library takes for an address",
    "single_label": "a name without a dot",
    "special_name": "a name that is kept for private or special use",
    "denied": "on the operator's list of what is never called",
    "no_address": "the name has no address",
    "ip": "an address that is not of the open internet",
}


class Denied(WeirkeeperError):
    """A rule forbids the call.

    Attributes:
        rule: a key of `RULES`.
        why: for the owner of the URL; never tells an address that a name resolved to.
        address: the address that was refused, for the operator's log alone; "" = none.
    """

    def __init__(self, rule: str, why: str, address: str = "") -> None:
        super().__init__(f"{rule}: {why}")
        self.rule = rule
        self.why = why
        self.address = address
