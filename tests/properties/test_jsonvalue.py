"""JSON values: Python and SQL refuse the same ones, and what is accepted comes back exactly."""

from __future__ import annotations

import json
import string

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shared.errors import InvalidArguments
from shared.jobs.port import EnqueueOpts
from shared.jsonvalue import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, encode_object
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.statements import statement

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
numbers = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
good_leaves = st.none() | st.booleans() | numbers | texts
bad_leaves = st.sampled_from(
    ["\x00", "a\ud800", "\udfff!", float("nan"), float("inf"), 10**MAX_DIGITS, -(10**4200)]
)


def values(leaves: st.SearchStrategy) -> st.SearchStrategy:
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | objects(inner), max_leaves=12
    )


def objects(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.dictionaries(texts, inner, max_size=4)


def nested(depth: int, lists: bool, leaf: object) -> dict:
    """An object with that many levels of nesting, itself counted."""
    value: object = leaf
    for _ in range(depth - 1):
        value = [value] if lists else {"k": value}
    return {"k": value} if depth > 1 else {"k": leaf}


deep = st.builds(
    nested,
    st.integers(MAX_DEPTH - 2, MAX_DEPTH + 2),
    st.booleans(),
    st.sampled_from([None, 1, "x", [], {}]),
)
good = objects(values(good_leaves))
mixed = objects(values(good_leaves | bad_leaves)) | deep | st.lists(good_leaves) | good_leaves
per_test = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url) as conn:
        yield conn


def python_accepts(value: object) -> bool:
    try:
        encode_object(value, "args")
    except InvalidArguments:
        return False
    return True


def sql_accepts(conn: psycopg.Connection, value: object) -> bool:
    try:
        with conn.transaction():
            check = "select weirkeeper.check_object('args', %s::jsonb)"
            conn.execute(check, [json.dumps(value)])  # unchecked, as another language would
    except psycopg.Error as error:
        if error.sqlstate != "WK002" and not (error.sqlstate or "").startswith("22"):
            raise
        return False
    return True


@per_test
@given(value=mixed)
@example(value={"k": [[]] * 3})
@example(value=nested(MAX_DEPTH, lists=True, leaf=[]))
@example(value={"k": -(10**MAX_DIGITS) + 1})
@example(value={"k": 10**MAX_DIGITS})
def test_python_and_sql_refuse_the_same(conn, value):
    assert python_accepts(value) == sql_accepts(conn, value)


@per_test
@given(value=good)
@example(value={"beyond 2^53": 2**53 + 1, "and far beyond": -(10**300) - 7})
@example(value={"k": [1e16, -1e23, 1.7976931348623157e308, 5e-324]})
@example(value={"1e+23": '"1e+23", -0.0 \\'})
@example(value={"": "\u007f\u0085\u2028\U0001f600'\"\\\n"})
def test_what_is_accepted_comes_back_exactly(conn, value):
    with conn.transaction(force_rollback=True):
        job = PostgresJobs(conn).enqueue("corpus.index", value, EnqueueOpts())
        row = conn.execute("select args::text from weirkeeper.job where id = %s", [job]).fetchone()
    assert row is not None
    assert same(json.loads(row[0]), value)


def same(found: object, sent: object) -> bool:
    """Equal, and of the same type."""
    if isinstance(sent, dict) and isinstance(found, dict):
        return found.keys() == sent.keys() and all(same(found[k], sent[k]) for k in sent)
    if isinstance(sent, list) and isinstance(found, list):
        return len(found) == len(sent) and all(map(same, found, sent))
    return found == sent and type(found) is type(sent)


def test_integers_keep_every_digit_as_text(conn):
    number = 2**63 + 2**53 + 1
    with conn.transaction(force_rollback=True):
        job = PostgresJobs(conn).enqueue("corpus.index", {"n": number})
        row = conn.execute(
            "select args::text, args->>'n' from weirkeeper.job where id = %s", [job]
        ).fetchone()
    assert row == (f'{{"n": {number}}}', str(number))


@given(length=st.integers(MAX_BYTES - 30, MAX_BYTES + 30), letter=st.sampled_from("aé漢\n"))
@settings(max_examples=40, deadline=None)
def test_the_limit_is_in_bytes_of_text(length, letter):
    size = len(json.dumps(letter, ensure_ascii=False).encode()) - 2
    value = {"k": letter * (length // size)}
    expected = len('{"k":""}') + size * (length // size)
    assert python_accepts(value) == (expected <= MAX_BYTES)


def test_sql_has_the_same_limit_of_size(conn):
    fits = {"k": "x" * (MAX_BYTES - len('{"k": ""}'))}
    assert sql_accepts(conn, fits)
    assert python_accepts(fits)
    assert not sql_accepts(conn, {"k": fits["k"] + "x"})


@pytest.mark.parametrize(
    "value",
    [None, [], "x", 1, {1: "x"}, {"k": {2: 3}}, {"k": {"x"}}, {"k": b"x"}, {"k": object()}],
)
def test_what_is_no_json_is_refused_with_a_sentence(value):
    with pytest.raises(InvalidArguments, match=r"^args of kind x: expected .*; got .*; \w+"):
        encode_object(value, "args of kind x")


def test_a_number_that_python_cannot_even_print_is_refused():
    with pytest.raises(InvalidArguments, match="at most 4000 digits; got a longer one"):
        encode_object({"k": 10**5000}, "args of kind x")


def test_a_value_that_holds_itself_is_refused():
    value: dict = {}
    value["k"] = [value]
    assert not python_accepts(value)


@given(name=st.text(string.ascii_lowercase, min_size=1))
def test_a_statement_that_is_not_there_is_an_error(name):
    with pytest.raises(FileNotFoundError):
        statement(f"nowhere/{name}")
