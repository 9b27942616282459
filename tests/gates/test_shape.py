"""Shape: how long files and functions may be, no stubs, no left-over marks, no places of ours."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tests.gates.source import (
    ROOT,
    Source,
    complaints,
    everything,
    planted,
    product,
    red,
    tracked,
)

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
WORDY = (".py", ".sql", ".md", ".toml", ".conf", ".yml", ".yaml", ".json", ".txt", ".sh", "")
# Written in pieces, so that this file does not find itself.
VAGUE = ("util", "helper", "common", "manager", "misc", "data", "info", "stuff")
MARKS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
PLACES = re.compile(
    "|".join(
        (
            r"(?<![\w.])/wo" + r"rk/",
            r"/ho" + r"me/\w+",
            r"/Us" + r"ers/\w+",
            r"/tmp/" + r"wk\b",
            r"--(extra-)?index" + r"[-_]url\b",
            r"\barti" + r"factory\b",
            r"\bissu" + r"e[s]? #?\d+\b",
            r"\bChat" + r"GPT\b",
            r"\bCla" + r"ude\b",
            r"\bAnth" + r"ropic\b",
        )
    ),
    re.IGNORECASE,
)


def too_long(source: Source) -> Iterator[str]:
    """Complain about long files and functions."""
    lines = source.text.count("\n")
    if lines > LONGEST_FILE:
        yield f"{source.path}: {lines} lines; at most {LONGEST_FILE}"
    for node in source.walk(ast.FunctionDef, ast.AsyncFunctionDef):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > LONGEST_FUNCTION:
            said = f"{node.name} has {length} lines; at most {LONGEST_FUNCTION}"
            yield f"{source.path}:{node.lineno}: {said}"


def stubs(source: Source) -> Iterator[str]:
    """Complain about what is declared and not there."""
    protocols = {
        id(method)
        for node in source.walk(ast.ClassDef)
        if any(ast.unparse(base).startswith(("Protocol", "typing.Protocol")) for base in node.bases)
        for method in ast.walk(node)
    }
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            name = ast.unparse(node.exc).split("(")[0]
            if name == "NotImplementedError":
                yield f"{source.path}:{node.lineno}: {name}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and id(node) not in protocols:
            overloads = any("overload" in ast.unparse(d) for d in node.decorator_list)
            if not overloads and _empty(node.body):
                yield f"{source.path}:{node.lineno}: {node.name} does nothing"


def _empty(body: Sequence[ast.stmt]) -> bool:
    """Only `...`, or only `pass` without a word why."""
    rest = [s for s in body if not (isinstance(s, ast.Expr) and _is_text(s.value))]
    dots = all(isinstance(s, ast.Expr) and _is_dots(s.value) for s in rest)
    bare = len(rest) == len(body) and all(isinstance(s, ast.Pass) for s in rest)
    return (bool(rest) and dots) or bare


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def vague_names(source: Source) -> Iterator[str]:
    """Complain about names that say nothing."""
    stem = source.path.rpartition("/")[2].removesuffix(".py").strip("_")
    if stem in VAGUE or stem.removesuffix("s") in VAGUE:
        yield f"{source.path}: a name that says nothing"
    for node in source.walk(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
        name = node.name.strip("_")
        if name.startswith("do_") or name.lower().endswith(("manager", "helper", "utils")):
            yield f"{source.path}:{node.lineno}: {node.name}: a name that says nothing"


def undocumented(source: Source) -> Iterator[str]:
    """Complain about a module that does not say what it is."""
    if not ast.get_docstring(source.tree):
        yield f"{source.path}: expected a docstring"


def words(path: str, text: str) -> Iterator[str]:
    """Complain about left-over marks, and places and names of one workplace."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in (*MARKS.finditer(line), *PLACES.finditer(line)):
            yield f"{path}:{number}: {found.group()}"


def test_files_and_functions_are_short():
    assert complaints(too_long, everything()) == []


def test_sql_files_are_short():
    files = [p for p in tracked() if p.endswith(".sql") and not p.startswith("tests/")]
    assert [p for p in files if (ROOT / p).read_text("utf-8").count("\n") > LONGEST_FILE] == []


def test_nothing_is_a_stub():
    assert complaints(stubs, product()) == []


def test_names_say_something():
    assert complaints(vague_names, everything()) == []


def test_every_module_says_what_it_is():
    assert complaints(undocumented, product()) == []


def test_no_marks_and_no_places():
    said = []
    for path in tracked():
        if "." + path.rpartition(".")[2] in WORDY or "." not in path.rpartition("/")[2]:
            said += words(path, (ROOT / path).read_text("utf-8", "replace"))
    assert said == []


def test_planted_length_is_seen():
    assert red(too_long, "x = 1\n" * 401)
    assert red(too_long, "def f():\n" + "    x = 1\n" * 60)
    assert not red(too_long, "def f():\n" + "    x = 1\n" * 59)


def test_planted_stubs_are_seen():
    assert red(stubs, "def f():\n    raise NotImplementedError")
    assert red(stubs, "def f():\n    '''Later.'''\n    ...")
    assert red(stubs, "def f():\n    pass")
    port = "from typing import Protocol\nclass P(Protocol):\n    def f(self):\n        ..."
    assert not red(stubs, port)
    assert not list(stubs(planted("def f():\n    '''On purpose nothing.'''")))


def test_planted_names_are_seen():
    assert red(vague_names, "x = 1", "shared/utils.py")
    assert red(vague_names, "x = 1", "shared/postgres/_helper.py")
    assert red(vague_names, "class JobManager:\n    x = 1")
    assert red(vague_names, "def do_it():\n    return 1")
    assert not red(vague_names, "def done(): ...", "shared/database.py")
    assert red(undocumented, "x = 1")
    assert not red(undocumented, '"A thing."')


def test_planted_words_are_seen():
    for text in (
        "# TO" + "DO: later",
        "x = 1  # FIX" + "ME",
        "see /wo" + "rk/main",
        "cd /ho" + "me/me",
        "see iss" + "ue 12",
        "--index" + "-url https://x",
    ):
        assert list(words("planted", text)), text
    assert not list(words("planted", "work/main, the homes of issues; a hacker's to do list"))
