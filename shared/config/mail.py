"""How mail leaves: the operator's word, in `WEIRKEEPER_SMTP_URL` and `WEIRKEEPER_MAIL_FROM`.

Read once by `settings`; the SMTP adapter of the notify queue's children goes by it. A server that
the operator names may stand anywhere: the rules about strangers' addresses do not hold for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

from shared.config.env import Environment
from shared.errors import ConfigurationError

Tls = Literal["starttls", "always", "none"]
URL, SENDER = "WEIRKEEPER_SMTP_URL", "WEIRKEEPER_MAIL_FROM"
PORTS = {"smtp": 587, "smtps": 465}
LONGEST = 254  # characters of an address, RFC 5321
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~.-]{{1,64}}@{_LABEL}(\.{_LABEL})*")


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail server and who we are there.

    Attributes:
        host, port: of the server.
        tls: starttls (demanded, never merely tried), always (from the first byte), or none.
        user, password: to log in with; "" = no login.
        sender: address that mail comes from.
    """

    host: str
    port: int
    tls: Tls
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)

    def shown(self) -> str:
        """In words, without the password."""
        login = f", as {self.user}" if self.user else ""
        return f"from {self.sender} through {self.host}:{self.port} (TLS: {self.tls}{login})"


def is_address(text: str) -> bool:
    """Whether it is a plain mail address: ASCII, international domains as xn--."""
    return len(text) <= LONGEST and bool(_ADDRESS.fullmatch(text))


def read_mail(env: Environment) -> Mail | None:
    """Read and check both settings; None = no mail is sent.

    Raises:
        ConfigurationError: one without the other, or what is no URL or address.
    """
    url, sender = env.text(URL), env.text(SENDER)
    if not url and not sender:
        return None
    if not is_address(sender):
        raise ConfigurationError.of(
            SENDER, "a mail address, since mail is sent", sender, f"set it, or unset {URL}"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if parts.scheme not in PORTS or not parts.hostname or parts.path.strip("/") or parts.fragment:
        raise _mistaken()
    if not (user + password).isascii():  # smtplib sends no other
        raise _mistaken()
    return Mail(
        host=parts.hostname,
        port=port or PORTS[parts.scheme],
        tls=_tls(parts),
        sender=sender,
        user=user,
        password=password,
    )


def _tls(parts: SplitResult) -> Tls:
    if parts.query == "tls=none" and parts.scheme == "smtp" and not parts.password:
        return "none"
    if parts.query:
        raise _mistaken()
    return "always" if parts.scheme == "smtps" else "starttls"


def _mistaken() -> ConfigurationError:
    return ConfigurationError.of(
        URL,
        "smtp://user:password@host:587 (STARTTLS) or smtps://user:password@host:465; "
        "smtp://host:25?tls=none for one that needs neither login nor TLS",
        "something else",  # never the value: it may hold a password
        "percent-encode what is special in user and password, both in ASCII",
    )
