"""What a note tells the others: one event for each real change, with a subject that stays true."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.rows import dict_row

from shared.site.note import FIELDS

WATCHED = [
    ("genre", "wiki"),
    ("title", "Other"),
    ("body", "other"),
    ("tags", ["a"]),
    ("published", True),
    ("show_as_source", False),
    ("aliases", ["b"]),
    ("excerpt", "other"),
    ("slug", "other"),
    ("archived", True),
    ("css_classes", ["wide"]),
    ("lang", "de"),
]


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def add(conn, title="A note", genre="writing", parent=None, slug=""):
    return conn.execute(
        "insert into site.note (owner_id, genre, title, parent_id, slug)"
        " values ('me', %s, %s, %s, %s) returning id, version, event_id, path",
        (genre, title, parent, slug),
    ).fetchone()


def events(conn, kind="corpus.note.changed"):
    return conn.execute(
        "select * from weirkeeper.event where type = %s order by seq", [kind]
    ).fetchall()


def test_the_watched_columns_are_the_thirteen_that_readers_see():
    assert {column for column, _ in WATCHED} | {"parent_id"} == set(FIELDS)
    assert len(FIELDS) == 13


def subject(conn):
    return events(conn)[-1]["subject"]


def test_an_insert_tells_everything_that_subscribers_need(conn):
    note = add(conn, "Guide", "wiki")
    (event,) = events(conn)
    assert (event["type"], event["owner_id"], event["subject"]) == (
        "corpus.note.changed",
        "me",
        "wiki://guide",
    )
    assert event["id"] == note["event_id"]
    assert event["data"] == {
        "op": "insert",
        "note_id": str(note["id"]),
        "genre": "wiki",
        "parent_id": None,
        "published": False,
        "was_published": False,
        "path_changed": False,
        "version": 1,
    }


@pytest.mark.parametrize(("column", "value"), WATCHED)
def test_a_real_change_of_a_watched_column_is_one_event(conn, column, value):
    note = add(conn)
    for _ in range(2):  # the second time nothing changes
        conn.execute(
            psycopg.sql.SQL("update site.note set {} = %s where id = %s").format(
                psycopg.sql.Identifier(column)
            ),
            (value, note["id"]),
        )
    assert [e["data"]["op"] for e in events(conn)] == ["insert", "update"]
    assert events(conn)[-1]["data"]["version"] == 2
    now = conn.execute("select version, event_id from site.note").fetchone()
    assert now == {"version": 2, "event_id": events(conn)[-1]["id"]}


def test_a_new_parent_is_a_change_too(conn):
    parent, child = add(conn, "Top", "wiki"), add(conn, "Leaf", "wiki")
    conn.execute("update site.note set parent_id = %s where id = %s", (parent["id"], child["id"]))
    last = events(conn)[-1]
    assert last["subject"] == "wiki://top/leaf"
    assert last["data"]["path_changed"] is True
    assert last["data"]["parent_id"] == str(parent["id"])


def test_eight_changes_are_eight_events_and_no_change_is_none(conn):
    note = add(conn)
    for n in range(8):
        conn.execute("update site.note set body = %s where id = %s", (f"text {n}", note["id"]))
    conn.execute("update site.note set body = body, title = title, updated_at = now()")
    conn.execute("update site.note set body = 'x' where false")
    assert len(events(conn)) == 1 + 8
    assert [e["data"]["version"] for e in events(conn)] == list(range(1, 10))


def test_one_statement_over_many_notes_is_one_event_each(conn):
    for n in range(5):
        add(conn, f"n {n}")
    conn.execute("update site.note set published = (id % 2 = 0)")
    assert (
        len(events(conn))
        == 5 + conn.execute("select count(*) from site.note where published").fetchone()["count"]
    )


def test_a_rollback_leaves_neither_note_nor_event(conn):
    with conn.transaction(force_rollback=True):
        add(conn)
    assert events(conn) == []


def test_publishing_says_what_was_before(conn):
    note = add(conn)
    for published in (True, False):
        conn.execute("update site.note set published = %s where id = %s", (published, note["id"]))
        data = events(conn)[-1]["data"]
        assert (data["published"], data["was_published"]) == (published, not published)


@pytest.mark.parametrize(
    ("title", "segment"),
    [
        ("设计 笔记", "设计-笔记"),
        ("  Hello,  World!  ", "hello-world"),
        ("Ünïcode & Ёлка", "ünïcode-ёлка"),
        ("日本語・テスト", "日本語-テスト"),
        ("٣ أرقام", "٣-أرقام"),
        ("…!?", "untitled"),
        ("", "untitled"),
        ("x" * 200, "x" * 80),
        ("a" * 79 + "!b", "a" * 79),
    ],
)
def test_segments_keep_letters_and_digits_of_any_script(conn, title, segment):
    assert add(conn, title, "wiki")["path"] == segment


def test_paths_by_genre(conn):
    top = add(conn, "知识库", "wiki")
    middle = add(conn, "Data Bases", "wiki", top["id"])
    leaf = add(conn, "Some title", "wiki", middle["id"], slug="索引")
    assert leaf["path"] == "知识库/data-bases/索引"
    raw = add(conn, "Inbox", "raw", middle["id"])
    assert raw["path"] == str(raw["id"])
    assert add(conn, "My Essay", "writing", slug="The Essay")["path"] == "the-essay"


def test_a_path_reads_at_most_32_levels(conn):
    parent = None
    for level in range(40):
        parent = add(conn, f"level {level}", "wiki", parent and parent["id"])
    assert parent["path"].split("/") == [f"level-{n}" for n in range(8, 40)]


def test_a_path_never_outgrows_a_subject(conn):
    parent = None
    for level in range(40):
        parent = add(conn, f"{level:02}" + "界" * 78, "wiki", parent and parent["id"])
    assert len(subject(conn)) <= 2048
    assert parent["path"].endswith("界" * 78)


def test_a_delete_keeps_the_last_known_subject(conn):
    top = add(conn, "Top", "wiki")
    add(conn, "叶", "wiki", top["id"])
    conn.execute("delete from site.note")  # the parent goes in the same statement
    gone = events(conn)[2:]
    assert [(e["subject"], e["data"]["op"], e["data"]["version"]) for e in gone] == [
        ("wiki://top", "delete", 2),
        ("wiki://top/叶", "delete", 2),
    ]
    kept = conn.execute("select subject from site.note_removed order by note_id").fetchall()
    assert [row["subject"] for row in kept] == ["wiki://top", "wiki://top/叶"]


def test_a_note_with_children_stays(conn):
    top = add(conn, "Top", "wiki")
    add(conn, "Leaf", "wiki", top["id"])
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        conn.execute("delete from site.note where id = %s", (top["id"],))


def test_a_rename_hands_the_new_path_down_without_events_of_its_own(conn):
    top = add(conn, "Top", "wiki")
    middle = add(conn, "Middle", "raw", top["id"])  # its own path does not change
    leaf = add(conn, "Leaf", "wiki", middle["id"])
    conn.execute("update site.note set title = 'Summit' where id = %s", (top["id"],))
    assert [e["subject"] for e in events(conn)[3:]] == ["wiki://summit"]
    now = conn.execute("select path, version from site.note where id = %s", (leaf["id"],))
    assert now.fetchone() == {"path": "summit/middle/leaf", "version": 2}
    unmoved = conn.execute("select version from site.note where id = %s", (middle["id"],))
    assert unmoved.fetchone() == {"version": 1}


def test_a_note_never_stands_below_itself(conn):
    top = add(conn, "Top", "wiki")
    leaf = add(conn, "Leaf", "wiki", top["id"])
    with pytest.raises(psycopg.errors.CheckViolation, match="expected a parent that is not below"):
        conn.execute("update site.note set parent_id = %s where id = %s", (leaf["id"], top["id"]))


def test_what_the_trigger_keeps_cannot_be_forged(conn):
    note = add(conn)
    conn.execute("update site.note set version = 99, path = 'forged', event_id = gen_random_uuid()")
    now = conn.execute("select path, version, event_id from site.note").fetchone()
    assert now == {k: note[k] for k in ("path", "version", "event_id")}
    with pytest.raises(psycopg.errors.CheckViolation, match="expected its owner to stay"):
        conn.execute("update site.note set owner_id = 'you'")


PUBLIC = ("writing.published", "writing.unpublished")


def told(conn):
    """(type, subject) of what was told about public writings."""
    rows = conn.execute("select * from weirkeeper.event where type = any (%s) order by seq",
                        [list(PUBLIC)])  # fmt: skip
    return [(row["type"].removeprefix("writing."), row["subject"]) for row in rows]


def test_a_writing_that_goes_public_or_ceases_to_be_is_told_once(conn):
    note = add(conn, "My Essay", "writing")
    assert told(conn) == []

    def change(**fields):
        for column, value in fields.items():
            conn.execute(
                psycopg.sql.SQL("update site.note set {} = %s where id = %s").format(
                    psycopg.sql.Identifier(column)
                ),
                (value, note["id"]),
            )

    change(published=True)
    assert told(conn) == [("published", "writing://my-essay")]
    change(published=True, body="more", title="Other Essay")
    assert len(told(conn)) == 1
    change(genre="wiki")
    assert told(conn)[1:] == [("unpublished", "writing://other-essay")]
    change(published=False, genre="writing", body="still private")
    assert len(told(conn)) == 2
    change(published=True, title="随笔")
    assert told(conn)[2:] == [("published", "writing://other-essay")]
    conn.execute("delete from site.note")
    assert told(conn)[3:] == [("unpublished", "writing://随笔")]


def test_other_notes_say_nothing_of_writings(conn):
    conn.execute(
        "insert into site.note (owner_id, genre, title, published)"
        " values ('me', 'wiki', 'a', true), ('me', 'writing', 'b', true), ('me', 'raw', 'c', true)"
    )
    assert told(conn) == [("published", "writing://b")]
    conn.execute("update site.note set published = false")
    conn.execute("delete from site.note")
    assert told(conn) == [("published", "writing://b"), ("unpublished", "writing://b")]
