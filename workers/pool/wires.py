"""What the pool's loop watches of one foreign program, and its output on the way to the log.

Stands between `programs` and the selector that it shares with the pool. Must never leave a closed
descriptor registered: the next file with its number could not be watched.
"""

from __future__ import annotations

import logging
import selectors
from collections.abc import Callable
from contextlib import suppress

from workers.pool.program import MOST_OUTPUT, OUTPUT_BYTES, Program

log = logging.getLogger("program")


class Wires:
    """Of one program.

    Args:
        selector: calls its keys' data when they are ready.
        program: whose.
    """

    def __init__(self, selector: selectors.BaseSelector, program: Program) -> None:
        self._selector = selector
        self._program = program

    def connect(self, hear: Callable[[], object], bury: Callable[[], object]) -> None:
        """Watch: `hear` is called when it says something, `bury` when it is dead."""
        pipes = self._program.pipes
        for descriptor, ready in (
            (pipes.answers, hear),
            (pipes.output, self._pass_on),
            (self._program.sentinel, bury),
        ):
            self._selector.register(descriptor, selectors.EVENT_READ, ready)

    def sent(self) -> None:
        """Something was sent: what the program did not read yet is written when it does."""
        orders = self._program.pipes.orders
        if self._program.unsent() and orders not in self._selector.get_map():
            self._selector.register(orders, selectors.EVENT_WRITE, self._flush)

    def mute(self) -> None:
        """Say nothing more to it."""
        self._drop(self._program.pipes.orders)

    def deafen(self) -> None:
        """Hear nothing more of what it says."""
        self._drop(self._program.pipes.answers)

    def cut(self) -> None:
        """It is dead: log the rest of its output, watch nothing of it any more."""
        self.catch_up()
        self.mute()
        self.deafen()
        self._drop(self._program.pipes.output)
        self._drop(self._program.sentinel)

    def catch_up(self) -> None:
        """Log the output that is there: what was heard last came after it, of the same job."""
        for _ in range(MOST_OUTPUT // OUTPUT_BYTES):
            if not self._pass_on():
                break

    def _flush(self) -> None:
        self._program.flush()
        if not self._program.unsent():
            self.mute()

    def _pass_on(self) -> bool:
        """Log what one read of its output gives; whether there was any."""
        try:
            lines = self._program.output()
        except OSError:  # nothing is there
            return False
        if lines is None:
            self._drop(self._program.pipes.output)
            return False
        for line in lines:
            tell(self._program, logging.INFO, line)
        return True

    def _drop(self, descriptor: int) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(descriptor)


def tell(program: Program, level: int, text: str) -> None:
    """Log what a program said, with the job that it has."""
    fields: dict[str, object] = {"child": program.pid}
    if program.job is not None:
        fields |= {"job": str(program.job.job_id), "kind": program.job.kind}
    log.log(level, "%s", text, extra=fields)
