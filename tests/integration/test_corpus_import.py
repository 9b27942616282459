"""Importing a folder of Markdown: everything that can be a note becomes one, once."""

from __future__ import annotations

import os

import psycopg
import pytest
from psycopg.rows import dict_row

from shared.errors import NotFound
from shared.postgres.driver.connect import connect
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.site.notes import PostgresNotes
from shared.site import imports
from shared.site.folder import read_folder


@pytest.fixture
def sql(database_url):
    with psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as connection:
        yield connection


@pytest.fixture
def load(database_url, tmp_path):
    with connect(database_url, "tests") as conn:

        def run(folder=tmp_path):
            said = []
            items = read_folder(folder, said.append)
            arrived = imports.import_items(items, PostgresNotes(conn), "me", "wiki", said.append)
            imports.tell_imported(PostgresRecorder(conn), "me", arrived)
            return [note.how for note in arrived], said

        yield run


def write(folder, name, content="text"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def paths(sql):
    rows = sql.execute("select path from site.note order by path").fetchall()
    return [row["path"] for row in rows]


def test_folders_become_parents(load, sql, tmp_path):
    write(tmp_path, "readme.md")
    write(tmp_path, "guide/start here.md")
    write(tmp_path, "guide/深い/索引.md")
    write(tmp_path, "guide.md", "# The guide")
    write(tmp_path, "pictures/logo.png")
    write(tmp_path, ".git/hidden.md")
    how, said = load()
    assert said == []
    assert how == ["created"] * 5
    assert paths(sql) == ["guide", "guide/start-here", "guide/深い", "guide/深い/索引", "readme"]
    guide = sql.execute("select title from site.note where path = 'guide'").fetchone()
    assert guide["title"] == "The guide"  # the file is the folder's note


def test_titles_and_front_matter(load, sql, tmp_path):
    write(tmp_path, "a.md", "\ufeff---\ntitle: 'From front matter'\ntags: [x, \"y z\"]\n"
          "aliases:\n  - one\n  - two\nlang: de\npublished: yes\n---\n# Heading\nbody")  # fmt: skip
    write(tmp_path, "b.md", "```\n# no heading\n```\n## Real *heading* ##\nbody")
    write(tmp_path, "c.md", "no heading at all")
    write(tmp_path, "d.md", "---\nnot front matter\n")
    write(tmp_path, "e.md", "# Windows\r\nline\r\n")
    write(tmp_path, "f.md", "")
    load()
    rows = sql.execute("select * from site.note order by slug").fetchall()
    assert [row["title"] for row in rows] == [
        "From front matter", "Real *heading*", "c", "d", "Windows", "f",
    ]  # fmt: skip
    assert (rows[0]["tags"], rows[0]["aliases"]) == (["x", "y z"], ["one", "two"])
    assert (rows[0]["lang"], rows[0]["published"]) == ("de", True)
    assert rows[0]["body"] == "# Heading\nbody"
    assert rows[4]["body"] == "# Windows\nline"


def test_a_second_import_changes_only_what_changed(load, sql, tmp_path):
    write(tmp_path, "x/a.md", "# A")
    write(tmp_path, "x/b.md", "# B")
    load()
    before = paths(sql)
    assert load() == (["unchanged"] * 3, [])
    write(tmp_path, "x/a.md", "# Another title")
    how, _ = load()
    assert sorted(how) == ["unchanged", "unchanged", "updated"]
    assert paths(sql) == before
    told = sql.execute("select type, subject, data from weirkeeper.event order by seq").fetchall()
    assert [t["type"] for t in told].count("corpus.note.changed") == 3 + 1
    assert [(t["subject"], t["data"]) for t in told if t["type"] == "vault.imported"] == [
        ("vault/me", {"created": 3, "updated": 0, "unchanged": 0}),
        ("vault/me", {"created": 0, "updated": 1, "unchanged": 2}),
    ], "an import that changed nothing tells nothing"


def test_a_folder_s_note_keeps_what_people_wrote(load, sql, tmp_path):
    write(tmp_path, "x/a.md")
    load()
    sql.execute("update site.note set body = 'mine' where path = 'x'")
    assert load() == (["unchanged"] * 2, [])
    assert sql.execute("select body from site.note where path = 'x'").fetchone()["body"] == "mine"


def test_bad_files_are_told_and_skipped(load, sql, tmp_path):
    write(tmp_path, "latin.md", "caf\xe9".encode("latin-1"))
    write(tmp_path, "nul.md", "a\x00b")
    write(tmp_path, "big.md", b"x" * (1024 * 1024 + 1))
    write(tmp_path, "same.md")
    write(tmp_path, "same.markdown")
    write(tmp_path, "good.md")
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "gone.md").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / os.fsdecode(b"bad\xff.md")).write_text("x")
    how, said = load()
    assert (how, paths(sql)) == (["created"] * 2, ["good", "same"])
    assert len(said) == 7
    assert all("\n" not in line and ": skipped: " in line for line in said)
    told = "\n".join(sorted(said))
    for part in (
        "latin.md: skipped: expected UTF-8",
        "nul.md: skipped: expected text; got NUL",
        "big.md: skipped: expected at most 1,048,576 bytes; got 1,048,577",
        "same.md: skipped: another file has the same name",
        "pipe.md: skipped: expected a regular file",
        "gone.md: skipped:",
    ):
        assert part in told


def test_a_note_that_the_database_refuses_does_not_take_its_batch_along(
    load, sql, tmp_path, monkeypatch
):
    for n in range(5):
        write(tmp_path, f"n{n}.md")
    sql.execute("alter table site.note add check (slug <> 'n3')")
    how, said = load()
    assert how == ["created"] * 4
    assert [line.split(": ")[0] for line in said] == ["n3"]


def test_batches_are_bounded(load, sql, tmp_path):
    for n in range(450):
        write(tmp_path, f"n{n}.md", f"# n {n}")
    load()
    rows = sql.execute(
        "select count(*) from site.note group by xmin::text order by 1 desc"
    ).fetchall()
    assert [row["count"] for row in rows] == [200, 200, 50]


def test_a_place_is_made_of_notes():
    items = imports.under("a/b", [imports.Item(("x",), None)])
    assert [item.parts for item in items] == [("a",), ("a", "b"), ("a", "b", "x")]
    assert imports.under("", items) == items


def test_nothing_there(load, tmp_path):
    with pytest.raises(NotFound, match="nothing is there"):
        load(tmp_path / "missing")
    assert load() == ([], [])
