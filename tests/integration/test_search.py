"""The search index on Postgres: finds what was written, in any script, whatever the query."""

from __future__ import annotations

import pytest

from shared.postgres.driver.connect import connect
from shared.postgres.site.search import PostgresSearch
from shared.site.note import Note, Ref


@pytest.fixture
def search(database_url):
    with connect(database_url, "tests") as conn:
        yield PostgresSearch(conn)


def note(note_id, title, body="", *, version=1, owner="me", **fields):
    values = {"excerpt": "", "tags": (), "aliases": (), "published": False, "archived": False}
    values |= fields
    return Note(str(note_id), version, owner, "wiki", title.lower(), title, body, **values)


def found(search, query, **options):
    return [hit.note_id for hit in search.search(query, **{"owner_id": "me", **options}).hits]


def test_finds_every_word_and_ranks_titles_first(search):
    search.put(
        [
            note(1, "Elsewhere", "a relay is named here, once, among many other words"),
            note(2, "The relay", "how it claims"),
            note(3, "Queues", "nothing of it"),
        ]
    )
    assert found(search, "relay") == ["2", "1"]
    assert found(search, "relay claims") == ["2"]
    assert found(search, "RELAY  Claims!") == ["2"]
    assert found(search, "relay elephant") == []


def test_words_match_by_their_beginning_and_without_accents(search):
    search.put([note(1, "Übergänge", "Café, naïve résumé; ＦＵＬＬ width")])
    for query in ("uberg", "Übergänge", "cafe", "CAFÉ", "full", "resum"):
        assert found(search, query) == ["1"], query


@pytest.mark.parametrize(
    ("text", "hits", "misses"),
    [
        (
            "后台任务的中继每次最多处理两百行",
            ("中继", "任务", "两百", "行", "后", "后台 中继"),
            ("继中", "台前"),
        ),
        ("キューとリレー、そして検索", ("検索", "リレー", "索"), ("索検",)),
        ("알림을 보내는 대기열", ("대기열", "알림"), ("열대",)),
        ("การค้นหาข้อความ", ("ค้นหา",), ("หาค้น",)),
        ("混合 mixed テキスト2024", ("mixed", "2024", "混合"), ("合混",)),
        ("हिन्दी में खोज", ("हिन्दी", "खोज"), ("जखो",)),
        ("Поиск по заметкам", ("поиск", "ЗАМЕТК"), ("ксиоп",)),
    ],
)
def test_any_script_is_found(search, text, hits, misses):
    search.put([note(1, "x", text)])
    for query in hits:
        assert found(search, query) == ["1"], query
    for query in misses:
        assert found(search, query) == [], query


def test_a_typo_is_mended_and_said(search):
    search.put([note(1, "Relay", "subscription and supervisord"), note(2, "Other", "supervisor")])
    for typo in ("subscripton", "subscriptiom", "subscirption", "subscriptioon"):
        result = search.search(typo, owner_id="me")
        assert [hit.note_id for hit in result.hits] == ["1"], typo
        assert result.corrected == {typo: ["subscription"]}
    assert search.search("relay", owner_id="me").corrected == {}
    assert found(search, "zzzzqqqq") == []


@pytest.mark.parametrize(
    "query",
    ["", "   ", "!!!", "'", '"', "a & | !", "foo:*", "<->", "\\", "() & ()", "it's \\' --", "*",
     "a\x00b", "\ud800", "😀", "''''", "%s %(x)s", "x" * 5000, "y " * 500, "\u0301", "_"],
)  # fmt: skip
def test_no_query_ever_raises(search, query):
    search.put([note(1, "something", "it's here")])
    search.search(query, owner_id="me")


def test_signs_in_a_query_mean_nothing(search):
    search.put([note(1, "one", "quick & easy"), note(2, "two", "quick only")])
    assert found(search, "quick & !easy") == ["1"]
    assert found(search, '"quick" | (easy)') == ["1"]


def test_snippets_show_where(search):
    search.put([note(1, "t", "start " + "filler " * 100 + "the needle is here " + "tail " * 100)])
    (hit,) = search.search("needle", owner_id="me").hits
    assert hit.snippet.startswith("… ")
    assert "the needle is here" in hit.snippet
    assert len(hit.snippet) < 300


def test_only_the_owner_s_live_notes_are_found(search):
    search.put(
        [
            note(1, "same word"),
            note(2, "same word", owner="you"),
            note(3, "same word", archived=True),
            note(4, "same word", published=True),
        ]
    )
    assert sorted(found(search, "same")) == ["1", "4"]
    assert found(search, "same", published_only=True) == ["4"]
    assert len(found(search, "same", limit=1)) == 1


def test_an_older_version_changes_nothing(search):
    assert search.put([note(1, "new", version=5)]) == 1
    assert search.put([note(1, "old", version=4)]) == 0
    assert search.put([note(1, "again", version=5)]) == 0
    assert (found(search, "new"), found(search, "old")) == (["1"], [])
    assert search.known(["1", "2"]) == {"1": Ref("1", 5, "new")}


def test_a_removal_leaves_a_tombstone(search):
    search.put([note(1, "word", version=2)])
    assert search.remove([Ref("1", 3, ""), Ref("9", 1, "")]) == 2
    assert search.remove([Ref("1", 3, "")]) == 0
    assert found(search, "word") == []
    assert search.put([note(1, "word", version=2)]) == 0  # a job that read before the delete
    assert search.put([note(9, "word", version=1)]) == 0
    assert found(search, "word") == []
    assert search.known(["1"])["1"].version == 3


def test_a_huge_note_fits(search):
    words = " ".join(f"word{n}" for n in range(150_000))
    chinese = "".join(chr(0x4E00 + (n * 7919) % 20_000) for n in range(300_000))
    assert search.put([note(1, "big", words), note(2, "大", chinese)]) == 2
    assert found(search, "word77") == ["1"]
    assert found(search, "大") == ["2"]
