"""Importing what an application names: whatever its modules raise means that it cannot be loaded.

Also SystemExit and KeyboardInterrupt, but for the one that a person asks for meanwhile. Must never
decide what is told of it: that is for who knows what the name is for.
"""

from __future__ import annotations

import importlib
import signal
from types import FrameType
from typing import Any

from shared.errors import ConfigurationError


class NotLoaded(Exception):
    """A module, or what it was to hold, cannot be had; the cause is what was raised."""


class _Keys:
    """Notes whether Ctrl-C is pressed within the block; harmless where it means something else."""

    def __init__(self) -> None:
        self.pressed = False
        self._ours = False

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, self._press)
            except ValueError:  # not the main thread, which alone is interrupted
                return
            self._ours = True

    def __exit__(self, *_: object) -> None:
        if self._ours and signal.getsignal(signal.SIGINT) == self._press:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _press(self, _number: int, _frame: FrameType | None) -> None:
        self.pressed = True
        raise KeyboardInterrupt


def load(module: str, name: str) -> Any:
    """Import a module and take what it calls so.

    Raises:
        NotLoaded: it cannot be.
        ConfigurationError: what the module says is wrong with what it declares.
        KeyboardInterrupt: Ctrl-C was pressed, also if Python's importer ignored that.
    """
    keys = _Keys()
    found: Any = None
    raised: BaseException | None = None
    with keys:
        try:
            found = getattr(importlib.import_module(module), name)
        except BaseException as error:  # noqa: BLE001  (raised again below)
            raised = error
    if keys.pressed:
        raise KeyboardInterrupt from raised
    if isinstance(raised, ConfigurationError):
        raise raised
    if raised is not None:
        told = f": {raised}" if str(raised) else ""
        raise NotLoaded(f"{type(raised).__name__}{told}") from raised
    return found
