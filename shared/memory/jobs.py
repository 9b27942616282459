"""ADAPTER of the port Jobs, in memory. Before it: an application's test. After it: the runner."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

from shared.jobs.options import EnqueueOpts, check_options, checked_args, checked_many
from shared.jobs.port import DEFAULTS
from shared.jobs.trace import carried
from shared.memory.store import Store
from shared.memory.transaction import MemoryTransaction


class MemoryJobs:
    """Enqueues into a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tx: MemoryTransaction | None = None

    def transaction(self) -> MemoryTransaction:
        """Begin one; hand it to `with_tx`."""
        return MemoryTransaction(self._store)

    def with_tx(self, conn: Any) -> Self:
        """Return one that enqueues within `conn`; this one is left as it is.

        Args:
            conn: what `transaction` gave. Another kind of connection cannot be followed: what is
                enqueued beside it exists at once.
        """
        bound = copy.copy(self)
        bound._tx = conn if isinstance(conn, MemoryTransaction) else None  # noqa: SLF001  (ours)
        return bound

    def enqueue(self, kind: str, args: Mapping[str, Any], opts: EnqueueOpts = DEFAULTS) -> str:
        """Add a job; see shared.jobs.port.Jobs.enqueue.

        Raises:
            Conflict: another open transaction has enqueued one that keeps it out.
        """
        check_options(kind, opts)
        return self._add(kind, [checked_args(kind, args)], opts)[0]

    def enqueue_many(
        self,
        kind: str,
        args_list: Sequence[Mapping[str, Any]],
        opts: EnqueueOpts = DEFAULTS,
    ) -> list[str]:
        """Add many jobs, all or none; see shared.jobs.port.Jobs.enqueue_many."""
        check_options(kind, opts)
        return self._add(kind, checked_many(kind, args_list), opts)

    def _add(self, kind: str, texts: Sequence[str], opts: EnqueueOpts) -> list[str]:
        with self._store.lock, ExitStack() as stack:
            tx = self._tx or stack.enter_context(MemoryTransaction(self._store))
            declared = self._store.kind(kind)
            traced = replace(opts, trace=carried(opts.trace))
            return [tx.add(declared, text, traced) for text in texts]
