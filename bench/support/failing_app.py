"""The reference site alone, whose children hear of failpoints: for measurements that kill."""

from __future__ import annotations

from shared.app import App

app = App(environment=("TEST_FAILPOINTS",))
