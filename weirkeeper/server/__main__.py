"""`python -P -m weirkeeper.server`."""

from __future__ import annotations

import sys

from weirkeeper import identity

identity.check()

from weirkeeper.server.main import main  # noqa: E402  (nothing of ours before the check)

sys.exit(main())
