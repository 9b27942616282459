"""The one tree of errors.

Stands at the bottom: everything may raise these. `transient` decides whether the job layer, the
one owner of retries, tries again. Adapters translate foreign errors into these at one seam each.
"""

from __future__ import annotations


class WeirkeeperError(Exception):
    """Anything that Weirkeeper raises on purpose.

    Attributes:
        transient: trying again later, unchanged, can succeed.
        sqlstate: what Postgres called it; "" when it did not come from there, or not so far.
    """

    transient = False
    sqlstate = ""


class ConfigurationError(WeirkeeperError):
    """A setting, declaration or environment that cannot work (exit code 78)."""

    @classmethod
    def of(cls, setting: str, expected: str, got: object, hint: str) -> ConfigurationError:
        """Build the one form of message, one line: what was expected, what came, what to do.

        Args:
            setting: name of the setting or declaration at fault.
            expected: what it must be, in a few words.
            got: what it is; shown with repr.
            hint: what to set or do, as an order ("set WEIRKEEPER_X to …").
        """
        message = f"{setting}: expected {expected}; got {got!r}; {hint}"
        return cls(" ".join(message.splitlines()))


class SchemaTooOld(WeirkeeperError):
    """The database's schema is older than this program needs: stay, not ready, and retry."""

    transient = True


class SchemaTooNew(ConfigurationError):
    """A breaking migration newer than this program has been applied (exit code 78)."""


class DatabaseUnavailable(WeirkeeperError):
    """Postgres cannot be reached, or ended the session: retried for ever, never fatal."""

    transient = True


class DatabaseRefused(WeirkeeperError):
    """Postgres answered with an error that trying again will not mend."""


class ValuesRefused(DatabaseRefused):
    """Postgres refused the values of some row: the row is at fault, not the statement."""


class InvalidArguments(WeirkeeperError):
    """Job args or event data that are not a storable JSON object."""


class UnknownKind(WeirkeeperError):
    """A job kind that no declaration names."""


class UnknownEventType(WeirkeeperError):
    """An event type that no declaration names."""


class NotFound(WeirkeeperError):
    """No such job, event or note (or it belongs to another owner: the answer is the same)."""


class Conflict(WeirkeeperError):
    """What was asked for contradicts how things stand; nothing was changed.

    Attributes:
        job_id: the job that stands in the way; None when it is the state of the job itself.
    """

    def __init__(self, message: str, job_id: str | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id


class NetworkInTransaction(WeirkeeperError):
    """A handler called out over the network while its database transaction was open.

    The other side's slowness would hold row locks and keep vacuum back; and what it did cannot be
    rolled back. Call before the transaction, or after it.
    """


class NoDatabase(WeirkeeperError):
    """A handler asked for a database connection although its kind is declared to get none."""


class WaitersFull(WeirkeeperError):
    """A channel already has as many waiters as it may (64): answered at once, never queued.

    Between ourselves: a caller in Python is told "not finished", one over HTTP 503 and `full`.
    """
