"""How many processes a supervisord.conf starts of each program of ours: what the budget sums over.

Stands beside `lint`. Reads `command` and `numprocs` as supervisord will; spare slots that start by
hand (autostart=false) count, because they may be started.
"""

from __future__ import annotations

import re
from collections import Counter
from configparser import RawConfigParser

from shared.config.budget import SHARED
from shared.config.env import variable
from shared.errors import ConfigurationError
from weirkeeper.server.compose import programs, worked

_SINGLE = re.compile(r" (relay|listener|metrics)\b[^/]*$")
_VARIABLE = re.compile(r"%\(ENV_(\w+)\)s")


def processes(parser: RawConfigParser) -> Counter[str]:
    """Processes by queue, and of relay, listener and metrics; what queues of one process share.

    Raises:
        ConfigurationError: a number of processes that is none.
    """
    found: Counter[str] = Counter()
    for name in programs(parser):
        command = parser[f"program:{name}"].get("command", "")
        single = _SINGLE.search(command)
        queues = worked(command)
        for works in queues or ([single[1]] if single else []):
            found[works] += numprocs(parser, name)
        found[SHARED] += max(0, len(queues) - 1) * numprocs(parser, name)
    return found


def numprocs(parser: RawConfigParser, name: str) -> int:
    """How many processes one program has; 0 is allowed.

    Raises:
        ConfigurationError: it is no number, or names a variable that is not set.
    """
    raw = parser[f"program:{name}"].get("numprocs", "1")
    value = _VARIABLE.sub(lambda found: variable(found[1]), raw).strip()
    if not value.isdigit() or int(value) > 1000:
        raise ConfigurationError.of(
            f"supervisord.conf, program:{name} numprocs",
            "a whole number from 0 to 1000, also through %(ENV_X)s",
            f"{raw} = {value!r}",
            "correct it, or set the variable",
        )
    return int(value)
