"""`python -P -m listener`: checks that our names are ours, then hands over to listener.main."""

from __future__ import annotations

if __name__ == "__main__":
    from weirkeeper.identity import check

    check()

    from listener.main import main

    raise SystemExit(main())
