"""Failpoints: named places where a test may stop, fail or kill a process. For tests alone.

`fp("relay_passed")` does nothing unless the environment of the process names that place, and then
costs a look at an empty dict. A test sets TEST_FAILPOINTS to "name=what", several with ";":

    kill            the process ends as by kill -9
    raise           FailpointError, which nothing of ours expects
    pause:FILE      it waits until FILE is there; FILE.hit tells that it has come there

`@n` behind the name (relay_passed@3=kill) means: at the nth time. NAMES lists every place; a gate
keeps it and the calls equal, and an unknown name ends the process at its start.
"""

from __future__ import annotations

import os
import select
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from shared.config.env import failpoints
from shared.errors import ConfigurationError

NAMES = (
    "relay_passed",  # a pass has committed, and nothing was announced yet
    "relay_announced",  # its announcement has committed
    "webhook_fanout_begun",  # an event is to be fanned out, nothing is written
    "webhook_fanned_out",  # its deliveries have committed
    "webhook_begun",  # a delivery's job runs, nothing is leased
    "webhook_leased",  # its lease has committed, nothing is sent
    "webhook_answered",  # its answer is there, nothing is written
    "webhook_settled",  # what came of it has committed, its job has not ended
)
LOOK = 0.002  # seconds between two looks for the file of a pause


class FailpointError(Exception):
    """A test wanted an error here."""


def parsed(text: str) -> dict[str, tuple[int, str]]:
    """What is to happen where: (at which time, 0 = each; what) by name.

    Raises:
        ConfigurationError: an unknown name, or nothing that can happen.
    """
    plan = {}
    for part in filter(None, text.split(";")):
        place, _, what = part.partition("=")
        name, _, nth = place.partition("@")
        known = what in ("kill", "raise") or what.startswith("pause:/")
        if name not in NAMES or not known or not (nth or "0").isdigit():
            raise ConfigurationError.of(
                "TEST_FAILPOINTS",
                f"NAME[@n]=kill|raise|pause:/FILE with NAME one of {', '.join(NAMES)}",
                part,
                "unset it: it is for tests",
            )
        plan[name] = (int(nth or 0), what)
    return plan


_PLAN: Mapping[str, tuple[int, str]] = parsed(failpoints())
_SEEN: Counter[str] = Counter()


def fp(name: str) -> None:
    """Pass a failpoint.

    Args:
        name: one of NAMES.
    """
    if _PLAN:
        _pass(name, _PLAN)


def _pass(name: str, plan: Mapping[str, tuple[int, str]]) -> None:
    _SEEN[name] += 1
    nth, what = plan.get(name, (0, ""))
    if not what or nth not in (0, _SEEN[name]):
        return
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "raise":
        raise FailpointError(name)
    _pause(Path(what.removeprefix("pause:")))


def _pause(until: Path) -> None:
    until.with_name(until.name + ".hit").touch()
    while not until.exists():
        select.select([], [], [], LOOK)
