"""The settings of one process: frozen, read once, cross-checked in one place.

Every program builds them first (`Settings.load`), before it opens a socket or a connection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path

from shared.config.env import SUPERVISORD, Environment, handed_down
from shared.config.home import default_home, published_database_url, published_settings
from shared.config.installation import check_schema_name
from shared.config.loopback import check_loopback
from shared.config.mail import Mail, read_mail
from shared.config.outbound import Outbound, read_outbound
from shared.config.queues import Queue
from shared.config.spelling import command_line
from shared.config.urls import check_url, masked
from shared.errors import ConfigurationError
from shared.release import version

KEPT_AT_MOST = 10 * 366 * 24  # hours: ten years
GENERATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,62}")
NO_MAIL = "none is sent: WEIRKEEPER_SMTP_URL and WEIRKEEPER_MAIL_FROM are not set"
SHORTEST_SECRET = 32  # characters; base64 of 32 random bytes has 44
LOG_LEVELS = ("debug", "info", "warning", "error")
NO_SERVER = (  # of every command
    "no server runs here: expected one in {home}, or DATABASE_URL; start one with "
    f"`{command_line()} server`, or name its WEIRKEEPER_HOME"
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Effective settings. Durations are seconds, where the name does not say hours.

    Attributes:
        database_url: libpq URI, or "" while no server has been started and none was named.
        embedded: the URL was published by our own embedded server, not given from outside.
        sealing_keys: of WEIRKEEPER_SECRET, newest first; empty = none is set.
        outbound: what may be called outside.
        probe_hours: an endpoint that was disabled for its failures is left alone; 0 = for ever.
        mail: how mail is sent; None = it is not.
        discard_client_errors: a delivery ends with its first 4xx of no meaning of its own.
    """

    database_url: str
    direct_url: str
    embedded: bool
    schema: str
    home: Path
    app: str | None
    host: str
    listener_port: int
    metrics_port: int
    postgres_port: int
    postgres_user: str
    pgbin: str
    drain_seconds: float
    grace_seconds: float
    core_dumps: bool
    log_level: str
    keep_completed_hours: float
    keep_ended_hours: float
    keep_events_hours: float
    unknown_kind_hours: float
    generation: str
    children: Mapping[str, int]
    sealing_keys: tuple[str, ...] = field(repr=False)
    outbound: Outbound
    probe_hours: float
    mail: Mail | None
    discard_client_errors: bool

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read and check the environment.

        Args:
            environ: instead of the process's own environment (tests).

        Raises:
            ConfigurationError: a setting that cannot work, named with what was expected.
        """
        env = Environment(environ)
        if env.unknown():
            raise ConfigurationError.of(
                env.unknown()[0],
                "a setting that docs/settings.md lists",
                "an unknown name",
                "correct the spelling or unset it",
            )
        if env.unreadable():
            raise ConfigurationError.of(
                env.unreadable()[0], "text in UTF-8", "other bytes", "correct it"
            )
        home = Path(env.text("WEIRKEEPER_HOME") or default_home()).absolute()
        given = _url(env, "DATABASE_URL")
        if not given and not handed_down(SUPERVISORD):  # its programs have theirs already
            env.complete(published_settings(home))
        ports = _ports(env, embedded=not given)
        url = given or published_database_url(home)
        return cls(
            database_url=url,
            direct_url=_url(env, "WEIRKEEPER_DIRECT_URL") or url,
            embedded=not given,
            schema=check_schema_name(env.text("WEIRKEEPER_SCHEMA")),
            home=home,
            app=env.text("WEIRKEEPER_APP") or None,
            host=check_loopback(env.text("WEIRKEEPER_HOST")),
            listener_port=ports["listener"],
            metrics_port=ports["metrics"],
            postgres_port=ports["postgres"],
            postgres_user=env.text("WEIRKEEPER_POSTGRES_USER"),
            pgbin=env.text("WEIRKEEPER_PGBIN"),
            drain_seconds=env.seconds("WEIRKEEPER_DRAIN_SECONDS", 0, 3600),
            grace_seconds=env.seconds("WEIRKEEPER_GRACE_SECONDS", 0, 60),
            core_dumps=env.choice("WEIRKEEPER_CORE_DUMPS", ("no", "yes")) == "yes",
            log_level=env.choice("WEIRKEEPER_LOG_LEVEL", LOG_LEVELS),
            keep_completed_hours=env.hours("WEIRKEEPER_KEEP_COMPLETED_HOURS", 0, KEPT_AT_MOST),
            keep_ended_hours=env.hours("WEIRKEEPER_KEEP_ENDED_HOURS", 0, KEPT_AT_MOST),
            keep_events_hours=env.hours("WEIRKEEPER_KEEP_EVENTS_HOURS", 0, KEPT_AT_MOST),
            unknown_kind_hours=env.hours("WEIRKEEPER_UNKNOWN_KIND_HOURS", 1, KEPT_AT_MOST),
            generation=_generation(env.text("WEIRKEEPER_GENERATION")),
            children=_children(env.text("WEIRKEEPER_CHILDREN")),
            sealing_keys=_sealing_keys(env.text("WEIRKEEPER_SECRET")),
            outbound=read_outbound(env),
            probe_hours=env.hours("WEIRKEEPER_WEBHOOK_PROBE_HOURS", 0, KEPT_AT_MOST),
            mail=read_mail(env),
            discard_client_errors=env.choice(
                "WEIRKEEPER_WEBHOOK_CLIENT_ERRORS", ("retry", "discard")
            )
            == "discard",
        )

    def tuned(self, queues: Mapping[str, Queue]) -> dict[str, Queue]:
        """The queue table with this deployment's numbers of children.

        Raises:
            ConfigurationError: WEIRKEEPER_CHILDREN names an unknown queue.
        """
        for name in self.children:
            if name not in queues:
                raise ConfigurationError.of(
                    "WEIRKEEPER_CHILDREN", f"queues among {', '.join(queues)}", name, "correct it"
                )
        return {
            name: replace(queue, children=self.children.get(name, queue.children))
            for name, queue in queues.items()
        }

    def database(self) -> str:
        """The database's URL.

        Raises:
            ConfigurationError: none was given and no embedded server has been started.
        """
        if not self.direct_url:
            raise ConfigurationError(NO_SERVER.format(home=self.home))
        return self.direct_url

    def describe(self) -> dict[str, object]:
        """The effective settings as plain values, with passwords masked (`--check` prints it)."""
        shown: dict[str, object] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name.endswith("_url"):
                value = masked(value)
            elif item.name == "sealing_keys":
                value = ["***" for _ in value]
            elif item.name == "mail":
                value = NO_MAIL if value is None else value.shown()
            elif is_dataclass(value) and not isinstance(value, type):
                value = asdict(value, dict_factory=_listed)
            shown[item.name] = str(value) if isinstance(value, Path) else value
        return shown


def _listed(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Sets as lists in order, which JSON can show."""
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in pairs}


def _url(env: Environment, name: str) -> str:
    raw = env.text(name)
    return check_url(name, raw) if raw else ""


def _ports(env: Environment, *, embedded: bool) -> dict[str, int]:
    found: dict[str, int] = {}
    for owner in ("listener", "metrics", "postgres"):
        name = f"WEIRKEEPER_{owner.upper()}_PORT"
        port = env.integer(name, 0, 65_535)
        bound = port != 0 and (embedded or owner != "postgres")
        if bound and port in found.values():
            raise ConfigurationError.of(
                name, "a port that no other of our ports is", port, "give each its own (0 = any)"
            )
        found[owner] = port
    return found


def _generation(raw: str) -> str:
    if raw and not GENERATION.fullmatch(raw):
        raise ConfigurationError.of(
            "WEIRKEEPER_GENERATION", f"a match of {GENERATION.pattern}", raw, "name it like 2026-05"
        )
    return raw or _release()


@cache
def _release() -> str:
    """Our version, read once: handlers build settings for each job."""
    try:
        return version("weirkeeper")
    except ImportError:  # a checkout on the path that was never installed
        return "unknown"


def _children(raw: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in (part.strip() for part in raw.split(",") if raw.strip()):
        name, _, number = item.partition("=")
        if not number.isdigit() or not 1 <= int(number) <= 1000:
            raise _mistaken_children(item, "give each queue a number from 1 to 1000")
        if name in found:
            raise _mistaken_children(f"{name} twice", "name each queue once")
        found[name] = int(number)
    return found


def _sealing_keys(raw: str) -> tuple[str, ...]:
    found = tuple(item for item in (part.strip() for part in raw.split(",")) if item)
    if any(len(item) < SHORTEST_SECRET for item in found):
        raise ConfigurationError.of(
            "WEIRKEEPER_SECRET",
            f"secrets of at least {SHORTEST_SECRET} characters",
            "a shorter one",  # never the value itself
            "make one with `openssl rand -base64 32`",
        )
    return found


def _mistaken_children(got: str, hint: str) -> ConfigurationError:
    expected = 'a list such as "index=4,notify=2"'
    return ConfigurationError.of("WEIRKEEPER_CHILDREN", expected, got, hint)
