"""A mail server on a free port of this machine: takes letters, or answers as it is told to."""

from __future__ import annotations

from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class MailServer(Controller):
    """Use as a context manager.

    Attributes:
        answer_to, answer: to each recipient, to each letter.
        raw: letters as they came.
        logins: (user, password) of each.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(self, hostname="127.0.0.1", port=0, authenticator=self._login, **how)
        self.answer_to = self.answer = "250 OK"
        self.raw: list[bytes] = []
        self.logins: list[tuple[str, str]] = []
        self.login_ok = True

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def at(self) -> str:
        """host:port, once it runs."""
        assert self.server is not None
        return f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    @property
    def letters(self) -> list[EmailMessage]:
        """Letters that were taken."""
        return [message_from_bytes(one, policy=policy.default) for one in self.raw]  # type: ignore[arg-type]

    async def handle_RCPT(self, _server, _session, envelope, address, _options) -> str:  # noqa: N802
        if self.answer_to.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.answer_to

    async def handle_DATA(self, _server, _session, envelope) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            self.raw.append(envelope.content)
        return self.answer

    def _login(self, _server, _session, _envelope, _mechanism, given) -> AuthResult:
        self.logins.append((given.login.decode(), given.password.decode()))
        # not handled: the server itself answers 535, as real ones do; else it says nothing at all
        return AuthResult(success=self.login_ok, handled=self.login_ok)

    def _trigger_server(self) -> None:
        """Connect once, so that what its threads raise at the first connection is told here."""
        self.port = int(self.at.rpartition(":")[2])  # the one that was free
        super()._trigger_server()
