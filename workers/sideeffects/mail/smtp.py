"""ADAPTER of the port of mail: one letter, one connection to the operator's server (SMTP).

Encryption, where the setting asks for it, is demanded: without it nothing is sent, no login made.
Once the server has taken the letter, what goes wrong afterwards does not matter.
"""

from __future__ import annotations

import smtplib
import ssl
from contextlib import suppress
from functools import cached_property

from shared.config.mail import Mail
from workers.sideeffects.http.certificates import trust
from workers.sideeffects.mail.message import compose
from workers.sideeffects.mail.port import Answer, Letter

TIMEOUT = 8.0  # seconds for each answer of the server; the job's own time bounds them all
LONGEST_WORD = 200  # characters of a server's answer that are told


class SmtpMailer:
    """Sends letters through one server.

    Args:
        mail: the server.
        ca_file: PEM bundle of further authorities to trust; "" = none.
    """

    def __init__(self, mail: Mail, ca_file: str = "") -> None:
        self._mail = mail
        self._ca_file = ca_file

    def send(self, letter: Letter) -> Answer:
        """Send one letter; see workers.sideeffects.mail.port."""
        raw = compose(letter, self._mail.sender)
        try:
            smtp = self._connect()
        except (smtplib.SMTPException, OSError) as error:
            return Answer("later", f"{self._mail.host}: {_told(error)}", _ours(error))
        try:
            smtp.sendmail(self._mail.sender, [letter.to], raw)
        except (smtplib.SMTPException, OSError) as error:
            code = _code(error, letter.to)
            final = 500 <= code <= 599 and code not in _OURS
            told = f"{self._mail.host}: {_told(error)}"
            return Answer("never" if final else "later", told, code in _OURS)
        finally:
            with suppress(smtplib.SMTPException, OSError):
                smtp.quit()
            smtp.close()
        return Answer("taken")

    def _connect(self) -> smtplib.SMTP:
        name = self._mail.sender.rpartition("@")[2]
        host, port = self._mail.host, self._mail.port
        if self._mail.tls == "always":
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(
                host, port, name, timeout=TIMEOUT, context=self._trust
            )
        else:
            smtp = smtplib.SMTP(host, port, name, timeout=TIMEOUT)
        try:
            if self._mail.tls == "starttls":
                smtp.starttls(context=self._trust)
            if self._mail.user:
                smtp.login(self._mail.user, self._mail.password)
        except BaseException:
            smtp.close()
            raise
        return smtp

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return trust(self._ca_file)


# Answers of the 500s that the operator mends, not who receives: authentication, encryption.
_OURS = frozenset((530, 534, 535, 538))


def _ours(error: Exception) -> bool:
    """Whether it is for the operator to mend what is set, before any letter goes out."""
    refused = isinstance(error, smtplib.SMTPResponseException) and error.smtp_code in _OURS
    unable = smtplib.SMTPNotSupportedError, smtplib.SMTPAuthenticationError, ssl.SSLError
    return refused or isinstance(error, unable)


def _code(error: Exception, to: str) -> int:
    """The server's answer; 0 = none came."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return int(error.recipients.get(to, (0, b""))[0])
    return int(error.smtp_code) if isinstance(error, smtplib.SMTPResponseException) else 0


def _told(error: Exception) -> str:
    """The error in a line; what a server says of a login may repeat it, so that is left out."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"the login was refused ({error.smtp_code})"
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return f"it cannot do what is set: {_text(str(error))}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, said = next(iter(error.recipients.values()), (0, b""))
        return f"{code} {_text(said)}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_text(error.smtp_error)}"
    return f"{type(error).__name__}: {_text(str(error))}"


def _text(said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return " ".join(text.split())[:LONGEST_WORD]
