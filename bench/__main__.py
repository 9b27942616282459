"""`python -m bench NAME [options]`: runs one measurement; without a name, lists them.

What `script/bench` calls after it has set up the environment. A measurement is a module of this
package with `main(argv) -> int`: 0 when its target was met, 1 when it was not.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path


def names() -> list[str]:
    """Every measurement."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(m.name for m in found if not m.ispkg and not m.name.startswith("_"))


def main(argv: list[str]) -> int:
    """Run the measurement that the first argument names.

    Args:
        argv: its name, then its own options.

    Returns:
        The measurement's exit code; 2 when there is none of that name.
    """
    if not argv or argv[0] not in names():
        got = f"got {argv[0]!r}" if argv else "got none"
        said = f"bench: expected one of: {', '.join(names()) or '(none yet)'}; {got}"
        print(said, file=sys.stderr)
        return 2
    module = importlib.import_module(f"bench.{argv[0]}")
    code: int = module.main(argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
