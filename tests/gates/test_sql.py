"""SQL: one statement a file, each file used once, none in Python strings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.gates.source import ROOT, Source, complaints, product, red, tracked

FOLDER = "shared/postgres/sql/"
NAME = re.compile(r"[a-z_]+/[a-z_0-9]+")
EXECUTES = ("execute", "executemany", "stream", "copy", "mogrify")
# What begins like a statement and goes on like one; prose begins so, too ("select a queue").
LOOKS_LIKE_SQL = re.compile(
    r"""^\s*(
        select\s[^.]*\bfrom\b | select\s+(\w+\.)?\w+\s*\( | insert\s+into\s | delete\s+from\s
      | update\s+[\w.\"]+(\s+as\s+\w+|\s+\w+)?\s+set\s | with\s+\w+\s+as\s*\(
      | (create|alter|drop)\s+(table|index|function|schema|database|type|trigger|role|sequence)\s
      | (truncate|vacuum|analyze|explain|copy|lock\s+table)\s+[\w.\"{%(]
      | (listen|unlisten|notify)\s+[\w.\"{%]+\s*(;|,|$)
      | (begin|commit|rollback|savepoint)\s*;?\s*$ | set\s+(local|session)\s
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def sql_files() -> list[str]:
    """Every statement of the adapters, by its path."""
    return [p for p in tracked() if p.startswith(FOLDER) and p.endswith(".sql")]


def statements(source: Source) -> Iterator[tuple[int, str]]:
    """(line, name) of every statement that an adapter names."""
    docstrings = source.docstrings()
    for node in source.walk(ast.Constant):
        named = isinstance(node.value, str) and NAME.fullmatch(node.value)
        if named and id(node) not in docstrings and source.path.startswith("shared/postgres/"):
            yield node.lineno, str(node.value)


def in_strings(source: Source) -> Iterator[str]:
    """Complain about SQL in a Python string, whether it is executed or only kept."""
    docstrings = source.docstrings()
    for call, name in source.calls():
        first = call.args[0] if call.args else None
        is_text = isinstance(first, ast.Constant | ast.JoinedStr)
        if name.rpartition(".")[2] in EXECUTES and "." in name and is_text:
            yield f"{source.path}:{call.lineno}: {name}: a string is executed"
    for node in source.walk(ast.Constant):
        value = node.value
        if isinstance(value, str) and id(node) not in docstrings and LOOKS_LIKE_SQL.match(value):
            yield f"{source.path}:{node.lineno}: SQL in a string: {value.split()[:4]}"


def names_made_up(source: Source) -> Iterator[str]:
    """A statement's name is written out, so that it can be found; never put together."""
    for call, name in source.calls():
        asks = name.rpartition(".")[2] == "statement" and call.args
        if asks and not isinstance(call.args[0], ast.Constant | ast.Name):
            yield f"{source.path}:{call.lineno}: expected a name that is written out"


def header(text: str) -> bool:
    """Whether a statement begins with a comment of at least a few words."""
    first = text.split("\n", 1)[0]
    return first.startswith("-- ") and len(first.split()) > 3


def unused_or_shared(files: list[str], used: Counter[str]) -> list[str]:
    """Complain about files that are not used exactly once, and names without a file."""
    names = {str(PurePosixPath(p).relative_to(FOLDER).with_suffix("")) for p in files}
    said = [f"{name}.sql is used {used[name]} times" for name in sorted(names) if used[name] != 1]
    return said + [f"statement {name!r} has no file" for name in sorted(used) if name not in names]


def test_every_statement_is_used_exactly_once():
    used = Counter(name for source in product() for _, name in statements(source))
    assert unused_or_shared(sql_files(), used) == []


def test_no_sql_in_python():
    assert complaints(in_strings, product()) == []


def test_names_are_written_out():
    assert complaints(names_made_up, product()) == []


def test_every_statement_says_why():
    files = [*sql_files(), *(p for p in tracked() if p.endswith(".sql") and "migrations" in p)]
    assert len(files) > 20
    assert [p for p in files if not header((ROOT / p).read_text("utf-8"))] == []


def test_every_file_holds_one_statement():
    for path in sql_files():
        if path == FOLDER + "migrator/bootstrap.sql":
            continue  # runs before there is anything, as one script
        code = re.sub(r"--[^\n]*|'(?:[^']|'')*'|\$\$.*?\$\$", "", (ROOT / path).read_text("utf-8"))
        assert len([part for part in code.split(";") if part.strip()]) == 1, path


def answered(text: str) -> str:
    """The columns that a statement answers with: it without what stands in parentheses."""
    code, before = re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", text), ""
    while code != before:
        before, code = code, re.sub(r"\([^()]*\)", " _ ", code)
    writes = re.search(r"\b(insert into|update|delete from)\b", code)
    return code.partition("returning")[2] if writes else code


STAR = re.compile(r"(?:^|\bselect|,)\s*(?:\w+\.)?\*")


def test_every_answer_names_its_columns():
    """A column that a migration adds must not change what a prepared statement answers."""
    assert [p for p in sql_files() if STAR.search(answered((ROOT / p).read_text("utf-8")))] == []


def test_a_planted_star_is_seen():
    for text in ("select * from job", "select 1, j.* from job j", "delete from job returning *"):
        assert STAR.search(answered(text)), text
    for text in ("select count(*) from (select * from job) j", "select a * 2 from b", "unlisten *",
                 "insert into job select d.* from made d returning id"):  # fmt: skip
        assert not STAR.search(answered(text)), text


ENDS_ORDER = r"[();]|\b(?:limit|on|returning)\b"


def sorted_as_text(text: str) -> set[str]:
    """Names that ORDER BY takes from a select list in which they are text: 10 before 2.

    A bare name there is the select list's, never the table's; `n.id` is the table's.
    """
    code = re.sub(r"--[^\n]*", "", text)
    cast = set(re.findall(r"\b(\w+)::text\s*(?:,|\bfrom\b)", code))
    cast |= set(re.findall(r"::text\s+as\s+(\w+)", code))
    by = " ".join(re.findall(rf"\border by\b(.*?)(?:{ENDS_ORDER}|$)", code, re.DOTALL))
    return cast & set(re.findall(r"(?<![\w.:])(\w+)(?![\w.:(])", by))


def test_no_statement_sorts_numbers_as_text():
    found = {p: sorted_as_text((ROOT / p).read_text("utf-8")) for p in sql_files()}
    assert {p: names for p, names in found.items() if names} == {}


def test_planted_sorting_as_text_is_seen():
    assert sorted_as_text("select id::text, version from t where id > 1\norder by id limit 5")
    assert sorted_as_text("select 1, t.id::text as id from t order by kind, id desc")
    assert not sorted_as_text("select t.id::text, version from t order by t.id limit 5")


def test_planted_sql_is_seen():
    for text in (
        "conn.execute(\"set lock_timeout = '2s'\")",
        "cursor.execute(f'delete from {table}')",
        "QUERY = 'select id from weirkeeper.job where id = %s'",
        "QUERY = '''\n  with old as (\n select 1) delete from x'''",
        "QUERY = 'INSERT INTO job VALUES (1)'",
        "QUERY = 'update weirkeeper.job set kind = 1'",
        "LISTEN = 'listen weirkeeper_final'",
        "QUERY = 'select pg_notify(%s, %s)'",
    ):
        assert red(in_strings, text), text


def test_prose_is_not_sql():
    for text in (
        '"""Select a queue from the table."""',
        "hint = 'set WEIRKEEPER_APP=myapp:app'",
        "hint = 'update the settings and start again'",
        "hint = 'select one of them'",
        "conn.execute(statement('jobs/enqueue'), {'kind': 'x'})",
    ):
        assert not red(in_strings, text), text


def test_planted_files_are_seen():
    files = [FOLDER + "jobs/enqueue.sql", FOLDER + "jobs/unused.sql"]
    said = unused_or_shared(files, Counter({"jobs/enqueue": 2, "jobs/missing": 1}))
    assert said == [
        "jobs/enqueue.sql is used 2 times",
        "jobs/unused.sql is used 0 times",
        "statement 'jobs/missing' has no file",
    ]
    assert red(names_made_up, "statement(f'jobs/{name}')", "shared/postgres/planted.py")
    assert not header("select 1")
    assert not header("-- why")
