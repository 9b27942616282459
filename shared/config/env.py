"""The only reader of os.environ: the environment, read once, as typed values.

Stands before `settings`, which cross-checks what is read here. Each setting is one row of
`SETTINGS`; docs/settings.md lists the same rows, and a test keeps the two equal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from shared.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable: its name, default (as text), and what it means."""

    name: str
    default: str
    meaning: str
    secret: bool = False


SETTINGS = (
    Setting(
        "DATABASE_URL",
        "",
        "Postgres to use (libpq URI); empty = the embedded server that `script/server` starts",
        secret=True,
    ),
    Setting(
        "WEIRKEEPER_DIRECT_URL",
        "",
        "the same database without a pooler in between; empty = DATABASE_URL",
        secret=True,
    ),
    Setting("WEIRKEEPER_SCHEMA", "weirkeeper", "Postgres schema of this installation"),
    Setting("WEIRKEEPER_HOME", "", "folder of all state; empty = .weirkeeper in the checkout"),
    Setting("WEIRKEEPER_APP", "", 'the application, "module:attribute"; empty = the site alone'),
    Setting("WEIRKEEPER_HOST", "127.0.0.1", "address that listener and metrics bind"),
    Setting(
        "WEIRKEEPER_LISTENER_PORT",
        "8711",
        "port of the listener; 0 = a free one, which the server keeps",
    ),
    Setting(
        "WEIRKEEPER_METRICS_PORT",
        "9711",
        "port of the metrics endpoint; 0 = a free one, which the server keeps",
    ),
    Setting("WEIRKEEPER_POSTGRES_PORT", "54711", "port of the embedded Postgres; 0 = a free one"),
    Setting(
        "WEIRKEEPER_POSTGRES_USER", "nobody", "who runs the embedded Postgres when started by root"
    ),
    Setting("WEIRKEEPER_PGBIN", "", "folder of initdb and postgres to use instead of the wheel's"),
    Setting("WEIRKEEPER_DRAIN_SECONDS", "20", "how long a stop waits for running jobs"),
    Setting("WEIRKEEPER_GRACE_SECONDS", "2", "how long a job asked to stop may take before a kill"),
    Setting(
        "WEIRKEEPER_CORE_DUMPS",
        "no",
        "yes: a program or child that crashes may leave a core file, which holds secrets and what "
        "jobs are about",
    ),
    Setting("WEIRKEEPER_LOG_LEVEL", "info", "debug, info, warning or error"),
    Setting("WEIRKEEPER_KEEP_COMPLETED_HOURS", "24", "how long completed jobs are kept"),
    Setting(
        "WEIRKEEPER_KEEP_ENDED_HOURS",
        "168",
        "how long discarded and cancelled jobs are kept; rows of processes, drains and ticks, too",
    ),
    Setting("WEIRKEEPER_KEEP_EVENTS_HOURS", "168", "how long events are kept after their fan-out"),
    Setting(
        "WEIRKEEPER_UNKNOWN_KIND_HOURS",
        "24",
        "how long a job of a kind that nobody knows waits until it is discarded",
    ),
    Setting(
        "WEIRKEEPER_GENERATION",
        "",
        "name of this release, for `weirkeeper drain --generation old`; empty = our version",
    ),
    Setting(
        "WEIRKEEPER_CHILDREN",
        "",
        'children by queue, as "index=4,notify=2"; a queue not named keeps its own number',
    ),
    Setting(
        "WEIRKEEPER_SECRET",
        "",
        "what webhook secrets are sealed with, at least 32 characters; several, separated by "
        "commas, while it is changed: the first seals, all open",
        secret=True,
    ),
    Setting(
        "WEIRKEEPER_OUTBOUND_ALLOW",
        "",
        "networks and exact host names, separated by commas, that may be called although they are "
        "private",
    ),
    Setting(
        "WEIRKEEPER_OUTBOUND_DENY",
        "",
        "networks and exact host names that are never called; beats the other list",
    ),
    Setting("WEIRKEEPER_OUTBOUND_PORTS", "", "the only ports that are called; empty = any"),
    Setting(
        "WEIRKEEPER_OUTBOUND_HTTP",
        "no",
        "yes: plain http may be called, too; allowed: only of what the list of allowed hosts names",
    ),
    Setting(
        "WEIRKEEPER_OUTBOUND_NAT64", "no", "yes: this network reaches IPv4 through 64:ff9b::/96"
    ),
    Setting(
        "WEIRKEEPER_WEBHOOK_CLIENT_ERRORS",
        "retry",
        "discard: a delivery answered with a 4xx that has no meaning of its own ends at once",
    ),
    Setting(
        "WEIRKEEPER_WEBHOOK_PROBE_HOURS",
        "0",
        "how long an endpoint that was disabled for its failures is left alone until one held "
        "delivery is tried; a success enables it; 0 = it stays disabled",
    ),
    Setting(
        "WEIRKEEPER_SMTP_URL",
        "",
        "server that mail is sent through: smtp://user:password@host:587 (STARTTLS) or smtps://…; "
        "empty = no mail is sent",
        secret=True,
    ),
    Setting("WEIRKEEPER_MAIL_FROM", "", "address that mail comes from"),
    Setting(
        "WEIRKEEPER_OUTBOUND_CA",
        "",
        "file of further certificate authorities (PEM) to trust in what is called",
    ),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}


class Environment:
    """The settings as the environment gives them."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        source = os.environ if environ is None else environ
        self._set = {s.name for s in SETTINGS if source.get(s.name)}
        self._values = {s.name: source.get(s.name, "") or s.default for s in SETTINGS}
        self._unknown = sorted(
            name for name in source if name.startswith("WEIRKEEPER_") and not _known(name)
        )

    def is_set(self, beginning: str) -> bool:
        """Whether any setting whose name begins so is set, be it to its default."""
        return any(name.startswith(beginning) for name in self._set)

    def complete(self, values: Mapping[str, str]) -> None:
        """Take values for settings that are not set."""
        for name, value in values.items():
            if name not in self._set and name in _BY_NAME:
                self._values[name] = value

    def unknown(self) -> list[str]:
        """Names that look like settings but are none: likely misspelt."""
        return self._unknown

    def unreadable(self) -> list[str]:
        """Names of settings whose values are no UTF-8."""
        return [name for name, value in self._values.items() if not _readable(value)]

    def text(self, name: str) -> str:
        """The value as it came, or the default."""
        return self._values[name]

    def integer(self, name: str, low: int, high: int) -> int:
        """A whole number within bounds.

        Raises:
            ConfigurationError: anything else.
        """
        raw = self._values[name]
        try:
            value = int(raw)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise ConfigurationError.of(
                name, f"a whole number from {low} to {high}", raw, f"set {name}"
            )
        return value

    def seconds(self, name: str, low: float, high: float) -> float:
        """A number of seconds within bounds.

        Raises:
            ConfigurationError: anything else.
        """
        return self._number(name, low, high, "seconds")

    def hours(self, name: str, low: float, high: float) -> float:
        """A number of hours within bounds.

        Raises:
            ConfigurationError: anything else.
        """
        return self._number(name, low, high, "hours")

    def _number(self, name: str, low: float, high: float, unit: str) -> float:
        """A number within bounds.

        Raises:
            ConfigurationError: anything else.
        """
        raw = self._values[name]
        try:
            value = float(raw)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise ConfigurationError.of(
                name, f"a number of {unit} from {low:g} to {high:g}", raw, f"set {name}"
            )
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of a closed set, in any case.

        Raises:
            ConfigurationError: anything else.
        """
        raw = self._values[name]
        if raw.lower() not in allowed:
            raise ConfigurationError.of(name, f"one of {', '.join(allowed)}", raw, f"set {name}")
        return raw.lower()


# Written by our own processes for their children and for supervisord, not by people.
EPOCH = "WEIRKEEPER_EPOCH"  # whose child a process is: shared.services.process.life_mark
QUEUE = "WEIRKEEPER_QUEUE"  # whose kinds the children run
SUPERVISORD = "WEIRKEEPER_SUPERVISORD"  # pid whose child each program of a server must be
# What every program needs to find others, its user's files, and the words that people read.
MINIMAL = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", EPOCH)
INTERNAL = (EPOCH, QUEUE, SUPERVISORD, "WEIRKEEPER_SLOT", "WEIRKEEPER_PYTHON")


# What children get of our environment: what programs need to find others, their user's files and
# the words that people read; Python's, the linker's and libpq's own; our settings. Beside it only
# what the application declares: a secret that is not there cannot be told by an error tracker.
CHILDREN = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
    "PYTHON*", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "PG*",
    "DATABASE_URL", "WEIRKEEPER_*",
)  # fmt: skip
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
# Settings that only the children of some queues need.
_OF_QUEUES = {
    "WEIRKEEPER_SECRET": ("webhook", "maintenance"),
    "WEIRKEEPER_SMTP_URL": ("notify",),
    "WEIRKEEPER_MAIL_FROM": ("notify",),  # neither works without the other
}


def is_pattern(name: object) -> bool:
    """Whether it names an environment variable, or all that begin so (a * at its end)."""
    return isinstance(name, str) and bool(_VARIABLE.fullmatch(name))


def environment_of_children(queue: str, declared: Sequence[str]) -> dict[str, str]:
    """All that the children of a queue get of this process's environment.

    Args:
        queue: whose.
        declared: what the application's handlers need, as `is_pattern` has it.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if any(fnmatchcase(name, pattern) for pattern in (*CHILDREN, *declared))
        and queue in _OF_QUEUES.get(name, (queue,))
    }


# What tells of a database, or would lead to one: HOME has the address that a server publishes.
_OF_DATABASES = ("DATABASE_URL", "PG*", "WEIRKEEPER_DIRECT_URL", "WEIRKEEPER_HOME")
_DATABASE = re.compile(r"\s*postgres(ql)?(\+\w+)?://", re.IGNORECASE)


def tells_of_database(name: str, value: str) -> bool:
    """Whether who is given this variable may find a Postgres by it."""
    named = any(fnmatchcase(name, pattern) for pattern in _OF_DATABASES)
    return named or _DATABASE.match(value) is not None


def environment_without_database(queue: str, declared: Sequence[str]) -> dict[str, str]:
    """What a child gets that is to know of no database.

    Args:
        queue: whose.
        declared: what the application's handlers need; an address of a Postgres is left out.
    """
    given = environment_of_children(queue, declared)
    return {name: value for name, value in given.items() if not tells_of_database(name, value)} | {
        "WEIRKEEPER_HOME": os.devnull
    }


def hand_down(name: str, value: str) -> None:
    """Set a variable for the processes that this one starts from now on."""
    os.environ[name] = value


def handed_down(name: str) -> str:
    """A variable that the parent set; "" = it did not."""
    return os.environ.get(name, "")


def minimal_environment(names: Sequence[str] = ()) -> dict[str, str]:
    """The environment of a foreign program: what it cannot do without, and what was listed.

    Args:
        names: variables of ours that it is given as well, if they are set.
    """
    return {name: os.environ[name] for name in (*MINIMAL, *names) if name in os.environ}


def _readable(value: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in value)  # as Python keeps such bytes


def _known(name: str) -> bool:
    return name in _BY_NAME or name in INTERNAL


def failpoints() -> str:
    """What a test wants to happen where (shared.failpoints); "" = nothing, as for everybody."""
    return os.environ.get("TEST_FAILPOINTS", "")


def plain_output() -> bool:
    """Whether who reads our output asked for no colours (no-color.org), or could not show them."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "") in ("", "dumb")


def variable(name: str) -> str:
    """Any variable, as supervisord.conf names it with %(ENV_X)s; "" = it is not set."""
    return os.environ.get(name, "")
