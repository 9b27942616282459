"""From a letter to the bytes that a server is given: the same bytes for the same letter.

Pure. What comes from strangers (a URL, an answer) may stand in a subject, so control characters and
what begins an encoded word are taken out of headers, and the finished bytes are parsed again: they
must hold exactly the headers that were meant.
"""

from __future__ import annotations

import hashlib
import re
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import format_datetime

from shared.config.mail import is_address
from shared.errors import InvalidArguments
from workers.sideeffects.mail.port import Letter

LONGEST_SUBJECT = 200  # characters
# C0, DEL and C1; ends of lines and paragraphs; marks that turn text around; half characters.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
)
_POLICY = policy.SMTP.clone(cte_type="7bit")


def compose(letter: Letter, sender: str) -> bytes:
    """The letter as a message (RFC 5322), a plain part and one in HTML.

    Args:
        letter: to be sent.
        sender: plain address.

    Raises:
        InvalidArguments: an address is none, or the bytes do not read as they were meant.
    """
    if not is_address(letter.to):
        raise InvalidArguments(f"to: expected a plain mail address; got {letter.to[:80]!r}")
    domain = sender.rpartition("@")[2]
    name = re.sub(r"[^A-Za-z0-9.-]", "-", letter.id)
    headers = {
        "From": sender,
        "To": letter.to,
        "Subject": header_text(letter.subject),
        "Date": format_datetime(letter.written_at),
        "Message-ID": f"<{name}@{domain}>",
        "Auto-Submitted": "auto-generated",
    }
    message = EmailMessage(policy=_POLICY)
    for header, value in headers.items():
        message[header] = value
    message.set_content(_body(letter.text))
    message.add_alternative(_body(letter.html), subtype="html")
    mark = hashlib.sha256(f"{name} {letter.to}".encode()).hexdigest()
    message.set_boundary(f"=_{mark[:40]}")
    raw = message.as_bytes()
    _check(raw, headers)
    return raw


def header_text(text: str) -> str:
    """A text that can stand in a header: one line, nothing that begins an encoded word."""
    line = _CONTROLS.sub(" ", text)
    while "=?" in line:
        line = line.replace("=?", "= ?")
    return " ".join(line.split())[:LONGEST_SUBJECT]


def _body(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


def _check(raw: bytes, meant: dict[str, str]) -> None:
    found = BytesParser(policy=policy.SMTP).parsebytes(raw)
    own = ("mime-version", "content-type")
    names = sorted(name.lower() for name in found if name.lower() not in own)
    told = {name: " ".join(str(found[name]).split()) for name in meant}
    parts = [part.get_content_type() for part in found.walk()]
    if (
        names != sorted(name.lower() for name in meant)
        or told != meant
        or found.defects
        or parts != ["multipart/alternative", "text/plain", "text/html"]
    ):
        raise InvalidArguments("letter: expected one that reads as it was written; got another")
