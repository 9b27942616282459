"""Which version of something is installed, without importing a mail parser and a zip reader for it.

importlib.metadata brings both along, 2 MiB in every process. Here the one line is read where pip
wrote it; whatever is installed in another way is left to importlib.metadata.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

_MODULE = "importlib.metadata"
_LINE = "Version: "


def version(name: str) -> str:
    """The version of an installed distribution.

    Raises:
        ImportError: it is not installed (importlib.metadata.PackageNotFoundError).
    """
    folder = name.replace("-", "_") + "-*.dist-info/METADATA"
    for place in sys.path:
        for file in Path(place).glob(folder):
            found = _written(file)
            if found:
                return found
    return str(_real().version(name))


def _written(file: Path) -> str:
    """What a METADATA file says; "" = nothing before its description begins."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith(_LINE):
                return line.removeprefix(_LINE).strip()
            if not line.strip():
                break
    return ""


@contextmanager
def cheap_versions() -> Iterator[None]:
    """Within the block, answer libraries that ask for their own version when they are imported."""
    if _MODULE in sys.modules:
        yield
        return
    asked = ModuleType(_MODULE)
    asked.version = version  # type: ignore[attr-defined]
    asked.__getattr__ = lambda name: getattr(_real(), name)  # type: ignore[method-assign]
    sys.modules[_MODULE] = asked
    try:
        yield
    finally:
        if sys.modules.get(_MODULE) is asked:
            del sys.modules[_MODULE]


def _real() -> Any:
    found = sys.modules.get(_MODULE)
    if found is not None and found.__spec__ is None:  # what stands in for it
        del sys.modules[_MODULE]
    return import_module(_MODULE)
