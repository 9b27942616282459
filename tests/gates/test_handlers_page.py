"""docs/handlers.md says what the code says: options, defaults, attributes, answers, queues, names."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, Field, fields
from typing import get_args

import pytest

import weirkeeper
from shared.backoff import Backoff
from shared.config.queues import QUEUES, Queue
from shared.events.event import Event
from shared.events.subscriptions import Subscription
from shared.jobs.context import Context
from shared.jobs.kinds import Kind
from shared.jobs.outcomes import Outcome
from shared.jobs.port import EnqueueOpts
from tests.gates.source import ROOT

PAGE = (ROOT / "docs/handlers.md").read_text("utf-8")
# Pages for those who use it; the others may name what is inside.
FOR_USERS = (
    "README.md",
    *(f"docs/{name}.md" for name in ("handlers", "events", "sql_contract", "waiting")),
)
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORTED = re.compile(r"^from weirkeeper import (.+)$", re.MULTILINE)
# Of Python: what follows a `select` is a function of SQL.
REACHED = re.compile(
    r"(?<![\w`.])(?<!select )weirkeeper\.([A-Za-z]\w*)(?=\()|weirkeeper\.([A-Z]\w*)"
)
CAMEL = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)(?:\(.*?\))?`")
FOR_HOOKS = {"outcome"}
FOREIGN = {"KeyboardInterrupt", "MemoryError"}


def table(first: str) -> dict[str, list[str]]:
    """The rows of the first table after a line that begins so, by their first cell."""
    lines = iter(PAGE[PAGE.index(f"\n{first}") :].splitlines())
    rows = list(_table(lines))[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {row[0].strip("`"): row[1:] for row in cells}


def _table(lines):
    for line in lines:
        if line.startswith("|"):
            yield line
            break
    for line in lines:
        if not line.startswith("|"):
            return
        yield line


def default(field: Field) -> str:
    if field.default is MISSING:
        return ""
    return "`Backoff()`" if field.default == Backoff() else f"`{field.default!r}`"


def named(text: str) -> set[str]:
    """Names of `weirkeeper` that a page's words and snippets speak of."""
    listed = {name.strip() for line in IMPORTED.findall(text) for name in line.split(",")}
    code = "".join(CODE.findall(text))
    reached = {one or two for one, two in REACHED.findall(code)}
    return listed | reached | (set(CAMEL.findall(text)) - FOREIGN)


@pytest.mark.parametrize(
    ("first", "declared"),
    [
        ("`Kind`", Kind),
        ("`Subscription`", Subscription),
        ("`Queue`", Queue),
        ("## Enqueueing", EnqueueOpts),
    ],
)
def test_options_and_defaults_are_the_code(first, declared):
    said = {name: row[0] for name, row in table(first).items()}
    assert said == {field.name: default(field) for field in fields(declared)}


def test_the_queues_are_the_code():
    said = {name: tuple(row) for name, row in table("Built in").items()}
    assert said == {
        q.name: (str(q.children), f"{q.timeout:g}", f"{q.poll:g}", "yes" if q.awaited else "no")
        for q in QUEUES
    }


def is_property(member: object) -> bool:
    return isinstance(member, property)


def test_every_attribute_of_the_context_is_told():
    methods = [
        name
        for name, _ in inspect.getmembers(Context, inspect.isfunction)
        if not name.startswith("_")
    ]
    attributes = {f.name for f in fields(Context) if not f.name.startswith("_")}
    attributes |= {name for name, _ in inspect.getmembers(Context, is_property)} - FOR_HOOKS
    told = {name.removeprefix("ctx.") for name in table("## What it gets")}
    assert told == attributes | {f"{name}()" for name in methods}
    for field in fields(Event):
        assert f"`{field.name}`" in PAGE, field.name


def test_every_answer_is_told():
    told = {name.split("(")[0] for name in table("## What it may answer")}
    assert told == {outcome.__name__ for outcome in get_args(Outcome)} | {"None", "any exception"}


@pytest.mark.parametrize("page", FOR_USERS)
def test_pages_for_users_name_only_what_is_public(page):
    names = named((ROOT / page).read_text("utf-8"))
    assert names
    assert names - set(weirkeeper.__all__) == set()


def test_planted_faults_are_seen():
    assert named("`WaitsPort`") == {"WaitsPort"}
    assert named("```python\nfrom weirkeeper import A, B\nweirkeeper.Waiter(url)\n```\n") == {
        "A", "B", "Waiter",
    }  # fmt: skip
