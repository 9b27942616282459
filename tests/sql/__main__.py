"""`python -m tests.sql`: writes schema.golden.sql anew from the migrations."""

from __future__ import annotations

import psycopg

from tests.sql.schema_text import GOLDEN, schema_text
from tests.support.cluster import ThrowawayCluster
from tests.support.databases import Databases


def main() -> None:
    """Migrate a throwaway database and write down what it holds."""
    cluster = ThrowawayCluster()
    try:
        with psycopg.connect(Databases(cluster.url).create()) as conn:
            GOLDEN.write_text(schema_text(conn), "utf-8")
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
