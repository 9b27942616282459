"""Importing a library without something that it could do without, and we do.

    with absent("httpx._main"):
        import httpx

What it would import for a feature that nobody here uses is memory in every process. Only for what
the library itself declares optional, by catching the ImportError.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def absent(name: str) -> Iterator[None]:
    """Have a module taken for missing within the block, unless it is imported already.

    Args:
        name: of the module, with its packages.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
