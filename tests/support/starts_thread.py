"""A module of handlers that starts a thread when it is imported."""

from __future__ import annotations

import threading
from typing import Any

threading.Thread(target=threading.Event().wait, args=(600,), daemon=True).start()


def ok(_ctx: Any, _args: Any) -> None:
    """Nothing."""
