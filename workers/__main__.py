"""`python -P -m workers QUEUE`: checks that our names are ours, then hands over to workers.main.

Nothing is imported at the top: children of the fork server may import this module again.
"""

from __future__ import annotations

if __name__ == "__main__":
    from weirkeeper.identity import check

    check()

    from workers.main import main

    raise SystemExit(main())
