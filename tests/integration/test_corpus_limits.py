"""What a note may hold: our limits are the table's, and what is over them is said in our words."""

from __future__ import annotations

import pytest

from shared.errors import InvalidArguments, NotFound
from shared.postgres.driver.connect import connect
from shared.postgres.site.notes import PostgresNotes
from shared.site.drafts import Draft, Item
from shared.site.imports import import_items
from shared.site.markdown import parse

MIB = 1024 * 1024


@pytest.fixture
def notes(database_url):
    with connect(database_url, "tests") as conn:
        yield PostgresNotes(conn)


LIMITS = [
    ("title", "é", 500, "title: expected at most 500 characters; got 501"),
    ("slug", "é", 255, "slug: expected at most 255 characters; got 256"),
    ("lang", "é", 35, "lang: expected at most 35 characters; got 36"),
    ("excerpt", "é", 2000, "excerpt: expected at most 2,000 characters; got 2,001"),
    ("body", "x", MIB, "body: expected at most 1,048,576 bytes; got 1,048,577"),
    ("body", "é", MIB // 2, "body: expected at most 1,048,576 bytes; got 1,048,578"),
]


@pytest.mark.parametrize(("name", "letter", "most", "said"), LIMITS)
def test_the_most_is_stored_and_one_more_is_refused(notes, name, letter, most, said):
    written = notes.create("me", {"title": "A", name: letter * most})
    over = {name: letter * (most + 1)}
    for write in (
        lambda: notes.create("me", {"title": "A", **over}),
        lambda: notes.update("me", written.id, over),
        lambda: notes.arrive(
            "me", "wiki", [Draft(**{"slug": "a", "title": "A", **over}, parent_id=None)]
        ),
    ):
        with pytest.raises(InvalidArguments, match=said):
            write()


@pytest.mark.parametrize(
    ("owner", "fields", "said"),
    [
        ("", {}, "owner: expected 1 to 200 characters; got 0"),
        ("é" * 201, {}, "owner: expected 1 to 200 characters; got 201"),
        ("\udcff", {}, "owner: expected valid Unicode"),
        ("me", {"title": ""}, "title: expected 1 to 500 characters; got ''"),
        ("me", {"title": " \t"}, "title: expected 1 to 500 characters; got ' "),
        ("me", {"title": "\x00"}, "title: expected valid Unicode without NUL"),
        ("me", {"tags": ["a", "\udcff"]}, "tags: expected valid Unicode"),
        ("me", {"genre": "song"}, "genre: expected raw, wiki, writing; got 'song'"),
        ("me", {"parent_id": "abc"}, "parent_id: expected a note of yours; got 'abc'"),
        ("me", {"parent_id": "1_0"}, "parent_id: expected a note of yours; got '1_0'"),
    ],
)
def test_what_no_note_can_have_is_refused_by_name(notes, owner, fields, said):
    written = notes.create("me", {"title": "A"})
    with pytest.raises(InvalidArguments, match=said):
        notes.create(owner, {"title": "A", **fields})
    with pytest.raises(InvalidArguments, match=said):
        notes.update(owner, written.id, fields)


@pytest.mark.parametrize("asked", ["abc", "-1", "1_0", "٣", "9" * 30])
def test_an_id_of_no_note_is_told_as_it_came(notes, asked):
    with pytest.raises(NotFound, match=f"expected the id of one of yours; got '{asked}'"):
        notes.update("me", asked, {"title": "B"})


def test_the_longest_owner_is_one(notes):
    assert notes.create("é" * 200, {"title": "A"}).version == 1


def test_an_import_for_no_owner_is_refused_once(notes):
    items = [Item((name,), None) for name in "ab"]
    for owner, genre, said in (("", "wiki", "owner: expected"), ("me", "x", "genre: expected")):
        with pytest.raises(InvalidArguments, match=said):
            import_items(items, notes, owner, genre, pytest.fail)


@pytest.mark.parametrize("text", ["", "---\ntitle:\n---\nbody", '---\ntitle: "  "\n---\nbody'])
def test_a_file_without_a_title_is_called_by_its_name(text):
    assert parse(text, "name").title == "name"
