"""The pools of one process in one loop: each with its own children, none waits for another.

Before this: a queue process with one queue, or several. After it: each pool turns as if it were
alone. With one pool there is no detour. Must never let one pool's work keep another from its
deadlines for longer than one turn.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable, Sequence

from workers.pool.mixed import MixedPool


class Pools:
    """One or more pools.

    Args:
        pools: at least one.
    """

    def __init__(self, pools: Sequence[MixedPool]) -> None:
        self._pools = pools
        self._selector = selectors.DefaultSelector()
        for pool in pools:
            self._selector.register(pool.fileno(), selectors.EVENT_READ)

    @property
    def busy(self) -> int:
        """Children that hold jobs."""
        return sum(pool.busy for pool in self._pools)

    def watch(self, descriptor: int) -> None:
        """Have a turn end when the descriptor can be read."""
        self._selector.register(descriptor, selectors.EVENT_READ)
        self._pools[0].watch(descriptor, lambda: None)

    def unwatch(self, descriptor: int) -> None:
        """Watch it no more."""
        self._selector.unregister(descriptor)
        self._pools[0].unwatch(descriptor)

    def turn(self, longest: float) -> None:
        """One turn of each; see Pool.turn.

        Args:
            longest: seconds to wait at most, together.
        """
        if len(self._pools) == 1:
            self._pools[0].turn(longest)
            return
        self._selector.select(min(pool.patience(longest) for pool in self._pools))
        for pool in self._pools:
            pool.turn(0)

    def each(self, act: Callable[[MixedPool], None]) -> None:
        """Do something with each pool."""
        for pool in self._pools:
            act(pool)

    def close(self) -> None:
        """Kill what is left of each, and wait until it is gone; harmless when repeated."""
        for pool in self._pools:
            pool.close()
