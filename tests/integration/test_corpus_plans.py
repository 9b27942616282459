"""Each statement of the site and the inspector can use the index that its header names."""

from __future__ import annotations

import psycopg
import pytest

from shared.postgres.driver.statements import statement

PARAMS = {
    "notes/at": {"path": "x", "genre": "wiki", "id": 1},
    "notes/below": {"id": 1},
    "notes/forget": {"ids": [1, 2]},
    "notes/load": {"ids": [1, 2]},
    "notes/lock": {"id": 1, "owner_id": "me"},
    "notes/named": {"owner_id": "me", "genre": "wiki", "drafts": '[{"slug": "x"}]'},
    "notes/owned": {"id": 1, "owner_id": "me"},
    "notes/page": {"after": 1, "owner_id": "me", "limit": 10},
    "notes/removed": {"subject": "wiki://x"},
    "notes/settle": {"ids": [1, 2]},
    "search/add_terms": {"terms": ["one", "two"]},
    "search/find": {
        "query": "'one':*", "owner_id": "me", "published_only": False, "limit": 5, "words": ["one"],
    },
    "search/known": {"ids": [1, 2]},
    "search/similar": {"word": "worde"},
    "inspector/describe": {"ids": [1, 2]},
    "inspector/payload": {"id": 1},
    "inspector/attempts": {"id": 1},
    "journeys/of_events": {"ids": ["0" * 32], "subscription": "corpus.index"},
}  # fmt: skip


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("set enable_seqscan = off")  # tables are empty here
        yield connection


@pytest.mark.parametrize("name", PARAMS)
def test_reads_through_an_index(conn, name):
    rows = conn.execute("explain " + statement(name), PARAMS[name]).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert "Seq Scan" not in plan, plan
    assert "Index" in plan, plan
