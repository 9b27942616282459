"""`python -P -m metrics`: checks that our names are ours, then hands over to metrics.main."""

from __future__ import annotations

if __name__ == "__main__":
    from weirkeeper.identity import check

    check()

    from metrics.main import main

    raise SystemExit(main())
