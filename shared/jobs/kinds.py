"""Kinds of job, as data. A kind is handed to the runtime when it is built; nothing registers.

Read by the enqueue path (defaults), by queue processes (limits, backoff) and by their children
(the handler). The handler is named, not imported, so that a process which only enqueues never
loads what it will not run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from shared.backoff import DEFAULT, Backoff
from shared.errors import ConfigurationError

NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
_HANDLER = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
MAX_NAME = 63
MAX_SEARCHABLE = 8


@dataclass(frozen=True, slots=True)
class Kind:
    r"""One kind of job.

    Attributes:
        name: `[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*`, at most 63 characters.
        queue: name of a declared queue.
        handler: "module:function", called as `function(ctx, args)`; idempotent by contract.
        max_attempts: tries before the job is discarded, at least 1.
        timeout: seconds one attempt may run; None = the queue's.
        backoff: delays between tries.
        awaited: flush outcomes at once; None = the queue's.
        max_per_key: jobs that run at once with one concurrency key, at least 1.
        searchable: keys of the args by which jobs may be listed, at most 8.
    """

    name: str
    queue: str
    handler: str
    max_attempts: int = 10
    timeout: float | None = None
    backoff: Backoff = field(default=DEFAULT)
    awaited: bool | None = None
    max_per_key: int = 1
    searchable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a declaration that cannot work."""
        if len(self.name) > MAX_NAME or not NAME.fullmatch(self.name):
            raise ConfigurationError.of(
                "kind name",
                "dotted lower-case words of at most 63 characters",
                self.name,
                "rename the kind",
            )
        if not _HANDLER.fullmatch(self.handler or ""):
            raise ConfigurationError.of(
                f"kind {self.name}: handler", '"module:function"', self.handler, "name a function"
            )
        if self.max_attempts < 1:
            raise ConfigurationError.of(
                f"kind {self.name}: max_attempts", "1 or more", self.max_attempts, "raise it"
            )
        if self.timeout is not None and not 0 < self.timeout <= 86_400:
            raise ConfigurationError.of(
                f"kind {self.name}: timeout",
                "more than 0 s and at most a day",
                self.timeout,
                "give it in seconds",
            )
        self._check_keys()

    def _check_keys(self) -> None:
        if self.max_per_key < 1:
            raise ConfigurationError.of(
                f"kind {self.name}: max_per_key", "1 or more", self.max_per_key, "raise it"
            )
        if not isinstance(self.searchable, tuple) or len(self.searchable) > MAX_SEARCHABLE:
            raise ConfigurationError.of(
                f"kind {self.name}: searchable",
                f"a tuple of at most {MAX_SEARCHABLE} keys",
                self.searchable,
                "name the keys that people look for",
            )
