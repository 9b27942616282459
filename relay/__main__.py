"""`python -P -m relay`: checks that our names are ours, then hands over to relay.main."""

from __future__ import annotations

if __name__ == "__main__":
    from weirkeeper.identity import check

    check()

    from relay.main import main

    raise SystemExit(main())
