"""ADAPTERS: the only importer of psycopg. One SQL statement a file, under sql/."""

from __future__ import annotations

from shared.release import cheap_versions

with cheap_versions():
    import psycopg  # noqa: F401
