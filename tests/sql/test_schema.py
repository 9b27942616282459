"""The schema is the one written down, and every table says whether it emits events."""

from __future__ import annotations

import difflib
import re

import psycopg
import pytest

from shared.app import load_app
from shared.jobs import states
from tests.sql.schema_text import GOLDEN, schema_text

# What a table's comment must say about events.
POLICY = re.compile(r"\b(No events\b|The outbox itself\b|Emits (?P<types>[a-z_.]+(, [a-z_.]+)*))")
TABLES = """
    select n.nspname || '.' || c.relname, obj_description(c.oid, 'pg_class'),
           exists (select from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relkind in ('r', 'p')
    order by 1"""


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield conn


def without_policy(conn: psycopg.Connection) -> list[str]:
    """Tables whose comment does not say it, or names a type that is not declared."""
    declared = {t.name for t in load_app(None).event_types}
    said = []
    for table, comment, has_trigger in conn.execute(TABLES).fetchall():
        found = POLICY.search(comment or "")
        if not found:
            said.append(f"{table}: {comment}")
        elif found["types"]:
            unknown = set(found["types"].rstrip(".").split(", ")) - declared
            if unknown or not has_trigger:
                said.append(f"{table}: emits {unknown or 'without a trigger'}")
    return said


def test_the_schema_is_the_one_written_down(conn):
    written, found = GOLDEN.read_text("utf-8"), schema_text(conn)
    changed = "\n".join(difflib.unified_diff(written.split("\n"), found.split("\n"), lineterm=""))
    assert found == written, f"run `python -m tests.sql` when this is meant:\n{changed}"


def test_a_change_of_any_part_is_seen(conn):
    golden = schema_text(conn)
    for change in (
        "alter table weirkeeper.job alter column args drop default",
        "alter table weirkeeper.job drop constraint job_priority_check",
        "drop index weirkeeper.scheduled_due",
        "comment on table weirkeeper.job is 'x'",
        "drop trigger job_complete on weirkeeper.job",
        "alter sequence weirkeeper.ready_seq cache 2",
        "alter function weirkeeper.wake_queue(text) volatile security definer",
        "alter table weirkeeper.process set (fillfactor = 90)",
        "alter table weirkeeper.job alter column kind drop not null",
    ):
        with conn.transaction(force_rollback=True):
            conn.execute(change)
            assert schema_text(conn) != golden, change


def test_every_table_states_its_event_policy(conn):
    assert without_policy(conn) == []


def test_a_table_without_its_policy_is_seen(conn):
    with conn.transaction(force_rollback=True):
        conn.execute("create table weirkeeper.planted (id bigint)")
        assert without_policy(conn) == ["weirkeeper.planted: None"]
        conn.execute("comment on table weirkeeper.planted is 'Things. Emits planted.thing.'")
        assert without_policy(conn) == ["weirkeeper.planted: emits {'planted.thing'}"]


def allowed(conn: psycopg.Connection, constraint: str) -> set[str]:
    """The words that a CHECK constraint lists."""
    row = conn.execute(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = %s", [constraint]
    ).fetchone()
    assert row, constraint
    return set(re.findall(r"'([a-z_]+)'", row[0]))


def test_the_database_knows_the_same_states(conn):
    # A row of the log says where its job went; `running` is where no attempt can end.
    assert allowed(conn, "attempt_state_check") == set(states.STATES) - {states.RUNNING}


def test_nothing_lies_in_the_public_schema(conn):
    row = conn.execute(
        "select count(*) from pg_class where relnamespace = 'public'::regnamespace"
    ).fetchone()
    assert row == (0,)
