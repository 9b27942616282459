"""Imported by the fork server before it forks: the application, its handlers, what they need.

Every child starts with all of it in shared memory. What goes wrong is kept and told by the first
child (an error here would be swallowed). Must never open a socket or leave a thread running: a
fork copies neither in a state that can be used.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shared.app import load_app
from shared.config.env import QUEUE, handed_down
from shared.config.settings import Settings
from shared.errors import ConfigurationError
from shared.jobs.hooks import Hook, load_hooks
from shared.services.process import die_with_parent
from workers.handlers.prebuilt import build
from workers.handlers.registry import Handler, load_handlers


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the fork server has for its children: handlers by kind, or why there are none."""

    queue: str = ""
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    hooks: tuple[Hook, ...] = ()
    settings: Settings | None = None
    problem: str = ""
    new_privileges: bool = False


def load(queue: str) -> Loaded:
    """Load the handlers of a queue, or of several with commas between, in the fork server."""
    # The server's parent may be gone already; then its alive pipe ends the server.
    die_with_parent(signal.SIGKILL)
    gc.disable()  # the children enable it; here it would only scatter marks over shared pages
    sockets = _sockets()
    try:
        settings = Settings.load()  # for the children, too: read there, it costs each 2 MiB
        app = load_app(settings.app)
        handlers: dict[str, Handler] = {}
        for name in queue.split(","):
            handlers |= load_handlers(app, name)
        hooks = load_hooks(app.hooks)
        build()
        _check_forkable(sockets)
    except ConfigurationError as error:
        return Loaded(queue, problem=str(error) + _hint(error.__cause__))
    except BaseException as error:  # noqa: BLE001  (an import may raise anything, even SystemExit)
        problem = f"handlers of queue {queue}: {type(error).__name__}: {error}"
        return Loaded(queue, problem=problem + _hint(error))
    gc.collect()
    gc.freeze()
    privileges = all(app.all_queues[name].new_privileges for name in queue.split(","))
    return Loaded(queue, handlers, hooks, settings, new_privileges=privileges)


def _hint(error: BaseException | None) -> str:
    """A module that looks for a variable which is set, but not here, is told why."""
    name = error.args[0] if isinstance(error, KeyError) and error.args else None
    if not isinstance(name, str) or not name.isupper():
        return ""
    return f"; if that is an environment variable, declare it: App(environment=({name!r},))"


def _check_forkable(sockets: set[str]) -> None:
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads > 1:
        raise ConfigurationError.of(
            "handlers",
            "modules that start no thread when imported",
            f"{threads} threads",
            "start it in the handler",
        )
    opened = _sockets() - sockets
    if opened:
        raise ConfigurationError.of(
            "handlers",
            "modules that open no socket when imported",
            sorted(opened),
            "open it in the handler",
        )


def _sockets() -> set[str]:
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


LOADED = load(handed_down(QUEUE)) if handed_down(QUEUE) else Loaded()
