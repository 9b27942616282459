"""The handler of corpus.index: whatever the relay made of the events, the index is right."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
import pytest
from psycopg.rows import dict_row

from shared.events.event import Event
from shared.postgres.driver.connect import connect
from shared.postgres.site.search import PostgresSearch
from shared.site.note import Note
from workers.handlers.index import corpus_reindex
from workers.handlers.index.corpus_index import handle


class Context:
    """A handler's context, as far as this one uses it."""

    def __init__(self, conn):
        self._conn = conn

    @contextmanager
    def connection(self):
        yield self._conn


class Site:
    """Notes written with plain SQL; events handled as the relay would hand them out."""

    def __init__(self, conn, sql):
        self.conn, self.sql, self.seen = conn, sql, []
        self.search = PostgresSearch(conn)

    def add(self, title, genre="wiki", parent=None, body=""):
        row = self.sql.execute(
            "insert into site.note (owner_id, genre, title, parent_id, body)"
            " values ('me', %s, %s, %s, %s) returning id",
            (genre, title, parent, body),
        ).fetchone()
        return row["id"]

    def change(self, note_id, **columns):
        for name, value in columns.items():
            self.sql.execute(
                psycopg.sql.SQL("update site.note set {} = %s where id = %s").format(
                    psycopg.sql.Identifier(name)
                ),
                (value, note_id),
            )

    def delete(self, *ids):
        self.sql.execute("delete from site.note where id = any(%s)", (list(ids),))

    def events(self):
        rows = self.sql.execute(
            "select * from weirkeeper.event where id <> all(%s) order by seq", (self.seen,)
        ).fetchall()
        self.seen += [row["id"] for row in rows]  # never a cursor: one may commit late
        return [
            Event(str(r["id"]), r["type"], r["owner_id"], r["subject"], r["data"], "") for r in rows
        ]

    def run_pass(self):
        """One relay pass: per subject only the latest event becomes a job."""
        latest = {event.subject: event for event in self.events()}
        return [handle(Context(self.conn), {}, event).result for event in latest.values()]

    def found(self, query):
        return [int(hit.note_id) for hit in self.search.search(query, owner_id="me").hits]


@pytest.fixture
def site(database_url):
    with (
        connect(database_url, "tests") as conn,
        psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as sql,
    ):
        yield Site(conn, sql)


def test_add_change_delete(site):
    note = site.add("Weir", body="water")
    assert site.run_pass() == [{"written": 1, "removed": 0}]
    assert site.found("water") == [note]
    site.change(note, body="gates")
    site.run_pass()
    assert (site.found("water"), site.found("gates")) == ([], [note])
    site.delete(note)
    assert site.run_pass() == [{"written": 0, "removed": 1}]
    assert site.found("gates") == []
    assert site.sql.execute("select count(*) from site.note_removed").fetchone()["count"] == 0


def test_an_event_delivered_twice_changes_nothing_the_second_time(site):
    note = site.add("Weir")
    (event,) = site.events()
    first, second = (handle(Context(site.conn), {}, event).result for _ in range(2))
    assert (first["written"], second["written"]) == (1, 0)
    site.delete(note)
    (gone,) = site.events()
    first, second = (handle(Context(site.conn), {}, gone).result for _ in range(2))
    assert (first["removed"], second["removed"]) == (1, 0)
    handle(Context(site.conn), {}, event)  # the insert's job, run again late
    assert site.found("weir") == []


def test_two_notes_of_one_subject_are_both_indexed(site):
    both = [site.add("Untitled"), site.add("untitled!")]
    assert len(site.run_pass()) == 1
    assert sorted(site.found("untitled")) == both


def test_a_delete_behind_an_insert_of_the_same_subject_is_not_lost(site):
    old = site.add("Page", body="old words")
    site.run_pass()
    site.delete(old)
    new = site.add("Page", body="new words")
    assert len(site.run_pass()) == 1  # the insert's event is the latest
    assert site.found("words") == [new]


def test_a_delete_after_a_rename_in_one_pass_is_not_lost(site):
    old = site.add("Page", body="old words")
    site.run_pass()
    site.change(old, title="Other")
    site.delete(old)
    new = site.add("Other", body="new words")
    assert len(site.run_pass()) == 1
    assert site.found("words") == [new]


def test_a_rename_reaches_everything_below(site):
    top = site.add("Top")
    middle = site.add("Middle", parent=top)
    leaf = site.add("Leaf", parent=middle)
    site.run_pass()
    site.change(top, title="Summit")
    assert site.run_pass() == [{"written": 3, "removed": 0}]
    assert sorted(site.found("summit")) == [top, middle, leaf]
    assert site.search.known([str(leaf)])[str(leaf)].path == "summit/middle/leaf"


def test_a_rename_merged_with_a_later_change_still_reaches_everything_below(site):
    top = site.add("Top")
    leaf = site.add("Leaf", parent=top)
    site.run_pass()
    site.change(top, title="Summit", body="more")  # two events, the latest has no path_changed
    assert len(site.run_pass()) == 1
    assert site.found("summit leaf") == [leaf]


def test_a_retry_after_half_a_rename_does_the_rest(site, monkeypatch):
    top = site.add("Top")
    leaf = site.add("Leaf", parent=top)
    site.run_pass()
    site.change(top, title="Summit", body="more")
    event = site.events()[-1]
    assert event.data["path_changed"] is False
    with monkeypatch.context() as patch:
        patch.setattr(PostgresSearch, "put", lambda _self, _notes: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            handle(Context(site.conn), {}, event)
    handle(Context(site.conn), {}, event)
    assert site.found("summit leaf") == [leaf]


def test_a_child_added_while_its_parent_is_renamed_gets_the_new_path(site, database_url):
    top = site.add("Top")
    site.run_pass()
    with psycopg.connect(database_url) as renaming:
        renaming.execute("update site.note set title = 'Summit' where id = %s", (top,))
        early = site.add("Early", parent=top)  # committed first, with the old name
    site.run_pass()
    assert site.found("summit early") == [early]
    with psycopg.connect(database_url, row_factory=dict_row) as adding:
        other = Site(site.conn, adding)
        late = other.add("Late", parent=top)  # committed last, with the old name
        site.change(top, title="Peak")
        site.run_pass()
    site.run_pass()
    assert site.found("peak late") == [late]
    assert site.found("peak early") == [early]


def test_any_order_of_jobs_ends_right(site):
    note = site.add("First", body="one")
    site.change(note, body="two", title="Second")
    site.change(note, body="three")
    for event in reversed(site.events()):
        handle(Context(site.conn), {}, event)
    assert (site.found("three"), site.found("one")) == ([note], [])


def test_a_reindex_mends_whatever_the_index_holds(site):
    kept = site.add("Kept", body="right words")
    site.run_pass()
    wrong = Note(str(kept), 99, "me", "wiki", "x", "x", "wrong words", "", (), (), False, False)
    ghost = Note("777", 1, "me", "wiki", "x", "x", "wrong words", "", (), (), False, False)
    gone = site.add("Gone", body="right words")
    site.run_pass()
    site.delete(gone)
    site.run_pass()
    site.search.put([wrong, ghost])
    assert sorted(site.found("wrong")) == [kept, 777]
    result = corpus_reindex.handle(Context(site.conn), {"owner_id": "me"}).result
    assert result == {"written": 1, "removed": 1}
    assert (site.found("right"), site.found("wrong")) == ([kept], [])
    again = corpus_reindex.handle(Context(site.conn), {}).result
    assert again == {"written": 1, "removed": 0}


def test_a_reindex_reaches_every_note_whatever_the_length_of_its_id(site):
    site.sql.execute(
        "insert into site.note (owner_id, genre, title, body)"
        " select 'me', 'wiki', 'Note ' || i, 'right words' from generate_series(1, 1200) i"
    )
    result = corpus_reindex.handle(Context(site.conn), {}).result
    assert result == {"written": 1200, "removed": 0}
    stale = "select count(*) from site.document d join site.note n on n.id = d.note_id"
    assert site.sql.execute(f"{stale} where d.version < n.version").fetchone()["count"] == 0
    assert corpus_reindex.handle(Context(site.conn), {}).result == result
