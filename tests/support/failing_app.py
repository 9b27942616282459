"""The reference site alone, whose children hear of failpoints."""

from __future__ import annotations

from shared.app import App

app = App(environment=("TEST_FAILPOINTS",))
