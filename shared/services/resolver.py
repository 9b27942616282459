"""Names to addresses, by the system's resolver, within a time that its caller sets.

Used before every call to the outside (`workers.sideeffects.http`), and when somebody gives a URL.
Judges nothing: `shared.webhooks.policy` does. Asks for a full name of the DNS (with a dot at its
end), so that neither a search list nor the hosts file of this machine makes an outside name an
inside one; names that the operator trusts are asked as they are.
"""

from __future__ import annotations

import socket
from typing import Protocol

from shared.errors import WeirkeeperError
from shared.services.calls import BoundedCalls

THREADS = 4
_ABSENT = {socket.EAI_NONAME, socket.EAI_NODATA}


class NameUnresolved(WeirkeeperError):
    """No answer. `absent`: the name does not exist or has no address; else nobody could tell."""

    transient = True

    def __init__(self, message: str, *, absent: bool) -> None:
        super().__init__(message)
        self.absent = absent


class Resolver(Protocol):
    """Finds the addresses of a name."""

    def resolve(self, host: str, seconds: float, *, as_is: bool) -> list[str]:
        """All addresses of a host, in the order in which to try them.

        Args:
            host: without a dot at its end.
            seconds: to wait at most.
            as_is: by all means of this machine; else as a full name of the DNS.

        Raises:
            NameUnresolved: it has none, or nobody could tell.
            Overdue: no answer in time.
        """
        ...


class SystemResolver:
    """`getaddrinfo`, in threads that are let go when it takes too long."""

    def __init__(self, threads: int = THREADS) -> None:
        self._calls = BoundedCalls("resolver", threads)

    def resolve(self, host: str, seconds: float, *, as_is: bool) -> list[str]:
        """See Resolver.resolve."""
        name = host if as_is else f"{host}."
        return self._calls.call(lambda: _look_up(name), seconds)


def _look_up(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise NameUnresolved(str(error.strerror), absent=error.errno in _ABSENT) from error
    except UnicodeError as error:  # a label that no name server would take
        raise NameUnresolved("no name of the DNS", absent=True) from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
