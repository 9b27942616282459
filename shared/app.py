"""An application, as data: everything that it declares to the engine.

Loaded once at the start of every process (`load_app`), checked as a whole, told to the database by
`weirkeeper migrate` and at boot (shared.postgres.queues.catalog). The engine knows no domain: the
reference site is an App like any other, in shared/site/app.py.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property

from shared.config.env import is_pattern
from shared.config.queues import QUEUES, Queue
from shared.errors import ConfigurationError
from shared.events.globs import matches
from shared.events.subscriptions import Subscription
from shared.events.type import EventType
from shared.importing import NotLoaded, load
from shared.jobs.kinds import Kind
from shared.jobs.periodic import Periodic
from shared.webhooks.times import check_times

SITE = "shared.site.app:app"
ENGINE = "shared.engine:app"  # what the engine itself runs: retention and the like
SETTING = "WEIRKEEPER_APP"
DECLARES: dict[str, type] = {
    "queues": Queue,
    "kinds": Kind,
    "event_types": EventType,
    "subscriptions": Subscription,
    "periodics": Periodic,
    "hooks": str,
    "environment": str,
}


@dataclass(frozen=True)
class App:
    """What an application declares.

    Attributes:
        queues: queues beside the five built in; same name = other settings for it.
        kinds: job kinds (a subscription brings its own).
        event_types: types that may be recorded.
        subscriptions: which events become jobs.
        periodics: what runs again and again.
        hooks: "module:function" of context managers around every job (shared.jobs.hooks).
        environment: variables that its handlers read, "NAME" or "PREFIX*"; children get no others
            but those that any program needs (shared.config.env).
        include_site: also run the reference site's declarations.
    """

    queues: tuple[Queue, ...] = ()
    kinds: tuple[Kind, ...] = ()
    event_types: tuple[EventType, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    periodics: tuple[Periodic, ...] = ()
    hooks: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    include_site: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no declaration at all."""
        for field, declared in DECLARES.items():
            given = getattr(self, field)
            wrong = [given]
            if isinstance(given, tuple | list):
                wrong = [item for item in given if not isinstance(item, declared)]
            if wrong:
                raise ConfigurationError.of(
                    f"App: {field}",
                    f"a tuple of {declared.__name__}(…)",
                    wrong[0],
                    "declare each with its class",
                )

    @cached_property
    def all_kinds(self) -> dict[str, Kind]:
        """Every kind by name, those of subscriptions included."""
        return {k.name: k for k in (*self.kinds, *(s.kind() for s in self.subscriptions))}

    @cached_property
    def all_queues(self) -> dict[str, Queue]:
        """Every queue by name: the built-in five, then the application's own."""
        return {q.name: q for q in (*QUEUES, *self.queues)}

    @cached_property
    def sessionless(self) -> frozenset[str]:
        """Names of queues no child of which may open a connection: no handler gets a database."""
        return frozenset(q.name for q in self.all_queues.values() if not self._may_connect(q))

    def _may_connect(self, queue: Queue) -> bool:
        if queue.program is not None:
            return queue.program.database
        kinds = [kind for kind in self.all_kinds.values() if kind.queue == queue.name]
        return not kinds or any(
            kind.database if kind.program is None else kind.program.database for kind in kinds
        )

    @cached_property
    def routes(self) -> list[tuple[str, Subscription]]:
        """Types × subscriptions, expanded: (event type, subscription that wants it)."""
        return [
            (t.name, s)
            for t in self.event_types
            for s in self.subscriptions
            if any(matches(glob, t.name) for glob in s.types)
            and (t.exposure == "webhook" or not s.exposed)
        ]

    def check(self) -> App:
        """Refuse declarations that contradict each other; return self.

        Raises:
            ConfigurationError: a duplicate name, an unknown queue, a glob without a match.
        """
        kinds = (*self.kinds, *(s.kind() for s in self.subscriptions))
        _unique("queue", (q.name for q in self.queues))
        _unique("event type", (t.name for t in self.event_types))
        _unique("kind", (k.name for k in kinds))
        for kind in kinds:
            if kind.queue not in self.all_queues:
                raise ConfigurationError.of(
                    f"kind {kind.name}: queue",
                    f"one of {', '.join(self.all_queues)}",
                    kind.queue,
                    "correct it or declare the queue",
                )
            _check_runs(kind, self.all_queues[kind.queue])
        self._check_deliveries()
        self._check_environment()
        self._check_globs()
        self._check_periodics()
        return self

    def _check_deliveries(self) -> None:
        kind = self.all_kinds.get("webhook.deliver")
        if kind is not None:
            check_times(kind.timeout or self.all_queues[kind.queue].timeout)

    def _check_environment(self) -> None:
        for name in self.environment:
            if not is_pattern(name):
                raise ConfigurationError.of(
                    "App: environment",
                    'names of variables, "NAME" or "PREFIX*"',
                    name,
                    "correct it; values come from the queue process",
                )

    def _check_globs(self) -> None:
        names = [t.name for t in self.event_types]
        for sub in self.subscriptions:
            for glob in sub.types:
                if not any(matches(glob, name) for name in names):
                    raise ConfigurationError.of(
                        f"subscription {sub.name}: types",
                        "globs that match a declared event type",
                        glob,
                        "declare the event type or correct the glob",
                    )

    def _check_periodics(self) -> None:
        _unique("periodic", (p.name for p in self.periodics))
        for periodic in self.periodics:
            if periodic.kind not in self.all_kinds:
                raise ConfigurationError.of(
                    f"periodic {periodic.name}: kind",
                    "a declared kind",
                    periodic.kind,
                    "correct it or declare the kind",
                )

    def merged(self, other: App) -> App:
        """Both applications' declarations as one (this one's come second)."""
        return replace(
            self,
            queues=(*other.queues, *self.queues),
            kinds=(*other.kinds, *self.kinds),
            event_types=(*other.event_types, *self.event_types),
            subscriptions=(*other.subscriptions, *self.subscriptions),
            periodics=(*other.periodics, *self.periodics),
            hooks=(*other.hooks, *self.hooks),
            environment=(*other.environment, *self.environment),
        )


def _check_runs(kind: Kind, queue: Queue) -> None:
    """Refuse a kind that nothing would run, or two things."""
    if queue.command:
        for field in ("handler", "command"):
            if getattr(kind, field):
                raise ConfigurationError.of(
                    f"kind {kind.name}: {field}",
                    f"none, for queue {queue.name} names a command that runs all its kinds",
                    getattr(kind, field),
                    "leave it out, or declare the kind on another queue",
                )
    elif not (kind.handler or kind.command):
        raise ConfigurationError.of(
            f"kind {kind.name}: handler",
            '"module:function", or a command of the kind or its queue',
            kind.handler,
            "name a function",
        )


def _unique(what: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ConfigurationError.of(
                f"{what} {name}", "one declaration", f"{count} of them", "remove or rename one"
            )


def load_app(spec: str | None) -> App:
    """Import the application that WEIRKEEPER_APP names; merge engine and site in; check it whole.

    Args:
        spec: "module:attribute", or None for the reference site alone.

    Raises:
        ConfigurationError: not importable, not an App, or declarations that cannot work.
    """
    base = _import(ENGINE)
    site = _import(SITE).merged(base)
    if spec is None:
        return site.check()
    app = _import(spec)
    return app.merged(site if app.include_site else base).check()


def _import(spec: str) -> App:
    module, _, attribute = spec.partition(":")
    if not module or not attribute:
        raise ConfigurationError.of(
            SETTING, '"module:attribute"', spec, f"set {SETTING}=myapp.background:app"
        )
    try:
        with redirect_stdout(sys.stderr):  # ours is read by programs: what `--check` prints is JSON
            found = load(module, attribute)
    except NotLoaded as failure:
        raise ConfigurationError.of(
            SETTING,
            "an importable module with that attribute",
            spec,
            f"correct it, or PYTHONPATH ({failure})",
        ) from failure.__cause__
    if not isinstance(found, App):
        raise ConfigurationError.of(
            SETTING, "a weirkeeper.App", f"{spec} = {type(found).__name__}", "build it with App(…)"
        )
    return found
