"""Handlers that take long to import."""

from __future__ import annotations

import sys
import time
from typing import Any

print("importing", file=sys.stderr, flush=True)
time.sleep(30)


def ok(_ctx: Any, _args: Any) -> None:
    """Nothing."""
