"""Calls of the guarded client as its tests make them: checked, and measured."""

from __future__ import annotations

import time
from pathlib import Path

from shared.webhooks.codes import ERRORS, PHASES
from tests.support.waiting import lateness
from workers.sideeffects.http.client import GuardedClient
from workers.sideeffects.http.exchange import Exchange, Limits, Outgoing

SHORT = Limits(seconds=1.0, body_seconds=0.5)  # for calls that end because time is over
LONG = Limits(seconds=20, body_seconds=20)  # for calls that end by themselves, on a slow machine


def post(client: GuardedClient, url: str, body: bytes = b"{}", limits: Limits = LONG) -> Exchange:
    found = client.send(Outgoing("POST", url, [("x-a", "1")], body), limits=limits)
    assert found.error in ("", *ERRORS)
    assert (found.status is None) == bool(found.error)
    assert set(found.times) <= set(PHASES)
    assert len(found.body) <= limits.body_bytes
    return found


def measured(
    client: GuardedClient, url: str, body: bytes = b"{}", limits: Limits = SHORT
) -> tuple[Exchange, float, float, int]:
    """(exchange, seconds it took, how late the machine is, bytes that the peak of memory grew)."""
    with lateness(time.monotonic) as late:
        before = reset_peak()
        begun = time.monotonic()
        found = post(client, url, body, limits)
        seconds = time.monotonic() - begun
        grown = memory("VmHWM") - before
    return found, seconds, 2 * late.worst, grown


def memory(what: str) -> int:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith(what + ":")).split()[1]) * 1024


def reset_peak() -> int:
    """Have the kernel forget the peak; return what is in use now."""
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    return memory("VmRSS")
