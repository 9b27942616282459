"""Retries are the job layer's, and nobody else's.

A retry loop is a `while` or a `for` that goes round again after an error and stops at the first
success: it holds a `try` with a handler that can fall through to the next turn, and the success
path of that `try` (its body or its `else`) leaves the loop. A loop that runs for ever and logs an
error (a service's) does not stop at success, and is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.gates.source import Source, complaints, product, red

ALLOWED = {
    # A database that is away must not end a process: waits with the reconnect backoff.
    ("shared/postgres/schema/boot.py", "wait_for_database"),
    ("weirkeeper/server/migrate.py", "_until_done"),
    ("workers/main.py", "_begin_life"),
    # A migration gives way to whoever holds its locks, and tries again.
    ("shared/postgres/schema/migrator.py", "_apply"),
    # A child found dead is no failure of the job, which did not run: the next one gets it.
    ("workers/pool/pool.py", "give"),
}
LEAVES = (ast.Return, ast.Break, ast.Raise)


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a block always leaves the loop at its end."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return leaves(last.body) and leaves(last.orelse)
    if isinstance(last, ast.With):
        return leaves(last.body)
    return isinstance(last, LEAVES)


def is_retry(attempt: ast.Try, after: Sequence[ast.stmt]) -> bool:
    """Whether success leaves the loop and an error goes round again."""
    succeeds = leaves(attempt.body) or leaves(attempt.orelse) or leaves(after)
    repeats = any(not leaves(handler.body) for handler in attempt.handlers)
    if leaves(after):  # what follows is reached by a handler, too, unless that goes round itself
        repeats = any(isinstance(h.body[-1], ast.Continue) for h in attempt.handlers)
    return succeeds and repeats


def retries(source: Source) -> Iterator[str]:
    """Complain about each retry loop."""
    for function in source.walk(ast.FunctionDef, ast.AsyncFunctionDef):
        if (source.path, function.name) in ALLOWED:
            continue
        for loop in ast.walk(function):
            if isinstance(loop, ast.While | ast.For) and any(_attempts(loop.body)):
                yield f"{source.path}:{loop.lineno}: a retry loop in {function.name}"


def _attempts(body: Sequence[ast.stmt]) -> Iterator[bool]:
    for at, node in enumerate(body):
        if isinstance(node, ast.Try):
            yield is_retry(node, body[at + 1 :])
        elif isinstance(node, ast.With | ast.If):
            yield from _attempts(node.body)


def test_no_retry_loop():
    assert complaints(retries, product()) == []


def test_every_exception_is_still_needed():
    elsewhere = [Source("elsewhere/" + s.path, s.text) for s in product()]
    found = " ".join(said for source in elsewhere for said in retries(source))
    for path, function in ALLOWED:
        assert f"elsewhere/{path}" in found, path
        assert f"a retry loop in {function}" in found, function


def test_planted_loops_are_seen():
    by_return = """
        def f():
            while True:
                try:
                    return call()
                except OSError:
                    log("again")
    """
    by_else = """
        def f():
            for attempt in range(5):
                try:
                    call()
                except OSError as error:
                    if attempt == 4:
                        raise
                else:
                    break
    """
    by_continue = """
        def f():
            while tries < 5:
                try:
                    answer = call()
                except OSError:
                    continue
                return answer
    """
    for text in (by_return, by_else, by_continue):
        assert red(retries, text), text


def test_other_loops_are_left_alone():
    service = """
        def f(stop):
            while not stop.wait(1):
                try:
                    tick()
                except Error:
                    log("a tick failed")
    """
    search = """
        def f():
            for line in lines:
                try:
                    value = int(line)
                except ValueError:
                    return None
                total += value
    """
    for text in (service, search):
        assert not red(retries, text), text
