"""The site works on a server that we did not set up: another locale, a role without rights."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from shared.app import load_app
from shared.postgres.driver.connect import connect
from shared.postgres.queues.catalog import declare
from shared.postgres.schema.migrator import migrate
from shared.postgres.site.notes import PostgresNotes
from shared.postgres.site.search import PostgresSearch

TITLE = "Ünïcode 设计 笔记"


@pytest.fixture
def plain_url(databases):
    """A database in locale C, owned by a role that may do nothing else."""
    name, role = (f"weirkeeper_test_{secrets.token_hex(6)}" for _ in range(2))
    with psycopg.connect(databases.server_url, autocommit=True) as conn:
        for statement in (
            "create role {role} login password 'x'",
            "create database {name} owner {role} template template0 encoding 'UTF8' locale 'C'",
        ):
            conn.execute(
                sql.SQL(statement).format(role=sql.Identifier(role), name=sql.Identifier(name))
            )
        server = urlsplit(databases.server_url)
        host = f"{role}:x@{server.hostname}:{server.port}"
        yield server._replace(netloc=host, path=f"/{name}").geturl()
        conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
        conn.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def test_migrates_and_finds_without_rights_in_any_locale(plain_url):
    migrate(plain_url)
    with connect(plain_url, "tests") as conn:
        declare(conn, load_app(None))
        notes, search = PostgresNotes(conn), PostgresSearch(conn)
        written = notes.create("me", {"title": TITLE, "body": "subscription 每次最多处理两百行"})
        assert written.path == "ünïcode-设计-笔记"
        search.put(notes.load([written.id]))
        for query in ("unicode", "设计", "两百", "SUBSCRIP", "subscripton"):
            assert [h.note_id for h in search.search(query, owner_id="me").hits] == [written.id]
