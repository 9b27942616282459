"""`python -P -m weirkeeper.server`."""

from __future__ import annotations

import signal
import sys

from weirkeeper import identity

signal.signal(signal.SIGINT, signal.SIG_DFL)  # as SIGTERM: at once, while it is imported
identity.check()

from weirkeeper.server.main import main  # noqa: E402  (nothing of ours before the check)

sys.exit(main())
