"""`python -P -m listener`: checks that our names are ours, then hands over to listener.main."""

from __future__ import annotations

if __name__ == "__main__":
    from pathlib import Path
    from runpy import run_path

    # By its place: another's `weirkeeper` may come first on the path.
    run_path(str(Path(__file__).parents[1] / "weirkeeper" / "identity.py"))["check"]()

    from listener.main import main

    raise SystemExit(main())
