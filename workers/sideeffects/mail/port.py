"""PORT of mail: a letter, and what became of it. Handlers of the notify queue use it.

The adapter is `smtp`. It retries nothing: the job layer does, so what may succeed later is told
apart from what never will.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Letter:
    """What is sent to one person.

    Attributes:
        id: of what it is about, such as an event's id: the same at each try, so that a letter sent
            twice is one to whoever receives it.
        to: a plain address.
        subject: a line; what could end or begin a header is taken out of it.
        written_at: its date, the same at each try.
        text, html: the same twice, for people.
    """

    id: str
    to: str
    subject: str
    written_at: datetime
    text: str = field(repr=False)
    html: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a letter.

    Attributes:
        sent: "taken" = the server has it; "later" = it may, when tried again; "never" = it said
            that it will not.
        why: in words, for the operator.
        ours: it cannot be taken until the operator mends what is set: a login, encryption.
    """

    sent: Literal["taken", "later", "never"]
    why: str = ""
    ours: bool = False


class Mailer(Protocol):
    """Sends letters."""

    def send(self, letter: Letter) -> Answer:
        """Send one; whatever the server does comes back as an answer."""
        ...
