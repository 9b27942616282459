"""Words of every script, folded the same on both sides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.postgres.site.vectors import query_of
from shared.site.markdown import parse
from shared.site.words import MAX_WORD, fold, lexemes, terms


def test_folding():
    assert fold("Ünïcode ＡＢＣ ﬁne STRASSE ß") == "unicode abc fine strasse ss"
    assert fold("Ёлка") == "елка"
    assert fold("한글") == "한글"


def test_words_and_pairs():
    assert list(lexemes("Event_pending, it's 3.11!")) == ["event", "pending", "it", "s", "3", "11"]
    assert list(lexemes("后台任务")) == ["后台", "台任", "任务", "务"]
    assert list(lexemes("用Python写")) == ["用", "python", "写"]
    assert list(lexemes("a" * 100)) == ["a" * MAX_WORD]


def test_terms_are_bounded():
    assert len(terms("word " * 100)) == 16
    assert terms("... !! --") == []


@given(st.text())
def test_whatever_the_text_its_words_find_it(text):
    kept = set(lexemes(text))
    for term in terms(text):
        assert all(any(k.startswith(lexeme) for k in kept) for lexeme in term.lexemes)
        assert all(
            lexeme and not set(lexeme) & set("'\\&|!():*<> \n\t\0") for lexeme in term.lexemes
        )


@given(st.text())
def test_a_query_is_always_well_formed(text):
    asked = terms(text)
    assert query_of(asked, {}).count("(") == len(asked)


@given(st.text())
def test_a_page_is_always_read(text):
    page = parse(text, "name")
    assert page.title


@given(st.text(alphabet="-: \n#[]'\"ab`~"))
def test_front_matter_is_never_a_failure(text):
    parse("---\n" + text, "name")
