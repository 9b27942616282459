"""The table of operations: checked arguments, one document, one command line."""

from __future__ import annotations

import argparse

import pytest

from panel.cli.commands import corpus, events, jobs, webhooks
from panel.cli.main import COMMANDS
from shared.errors import InvalidArguments
from shared.ops.operation import CALLERS
from shared.ops.table import OPERATIONS, call
from tests.support.operations_table import DOCUMENT, document


def test_the_document_lists_what_the_code_declares():
    assert DOCUMENT.read_text("utf-8") == document(), (
        "run `python -m tests.support.operations_table` when this is meant"
    )


def test_each_is_declared_whole():
    for name, operation in OPERATIONS.items():
        assert operation.name == name
        assert operation.caller in CALLERS
        assert operation.summary.endswith(".")


def actions(module) -> set[str]:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    (found,) = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return set(found.choices)


def test_the_command_line_has_every_operation():
    areas = (("corpus", corpus), ("tasks", jobs), ("events", events), ("webhooks", webhooks))
    ours = {
        f"{area}.{name.replace('-', '_')}" for area, module in areas for name in actions(module)
    }
    commands = {f"tasks.{name}" for name in ("pause", "resume")}
    assert commands <= {f"tasks.{name}" for name in COMMANDS}
    tools = {f"webhooks.{name}" for name in ("check_url", "verify", "receiver")}
    assert (ours | commands) - tools == set(OPERATIONS)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("corpus.nothing", {}, "expected one of corpus.create"),
        ("corpus.create", {"titel": "x"}, "unknown field `titel`"),
        ("corpus.create", {"title": 5}, r"Expected `str`, got `int` - at `\$.title`"),
        ("corpus.update", {}, "missing required field `id`"),
        (
            "corpus.import",
            {"folder": ""},
            "folder: expected the path of a folder or a file; got ''",
        ),
        ("corpus.search", {"query": "x", "limit": 0}, "limit: expected 1 to 100; got 0"),
        ("corpus.search", {"query": "x", "limit": -1}, "limit: expected 1 to 100; got -1"),
        ("corpus.search", {"query": "x", "limit": 10**16}, "limit: expected 1 to 100; got 1000"),
        ("tasks.list", {"state": "lost"}, "state: expected one of pending"),
        ("tasks.list", {"limit": 0}, "limit: expected 1 to 500; got 0"),
        ("tasks.cancel_all", {}, "expected something that the jobs have in common"),
        ("tasks.retry_all", {"all": False}, "expected something that the jobs have in common"),
        ("events.list", {"limit": 501}, "limit: expected 1 to 500; got 501"),
        ("events.requeue", {}, "name exactly one"),
        ("events.replay", {"subscriber": "x", "since": "y"}, "missing required field `until`"),
        ("tasks.pause", {"name": "x"}, "unknown field `name`"),
    ],
)
def test_arguments_are_checked(name, arguments, said):
    with pytest.raises(InvalidArguments, match=said):
        call(None, name, arguments)
