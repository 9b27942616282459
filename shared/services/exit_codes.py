"""Exit codes: an interface that supervisord.conf and operators rely on (docs/operations.md)."""

from __future__ import annotations

OK = 0
FAILED = 1  # a loop died, an unexpected error: the supervisor starts the program again
DRAIN_OVERRAN = 75
CONFIGURATION = 78  # a setting, declaration or breaking-newer schema: starting again will not help
