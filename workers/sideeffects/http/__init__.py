"""HTTP to addresses that strangers gave us: `client.GuardedClient` is all that others use."""

from __future__ import annotations

from shared.absent import absent

with absent("httpx._main"):  # its command line, which would bring along what it is painted with
    import httpx  # noqa: F401
