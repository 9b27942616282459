"""The code base as gates see it: parsed once, names resolved through their imports.

A gate is a function from a `Source` to complaints. `complaints(gate)` runs it over the product,
`planted(…)` makes a source that is not there, to show the gate red.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("weirkeeper", "shared", "relay", "workers", "listener", "metrics", "panel")


@dataclass(frozen=True)
class Source:
    """One Python file. `path` is relative to the checkout, with `/`."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return _parsed(self.text)

    def within(self, places: tuple[str, ...]) -> bool:
        """Whether it is one of these files, or in one of these folders (which end in `/`)."""
        return any(self.path == p or (p.endswith("/") and self.path.startswith(p)) for p in places)

    def walk(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Every node of these kinds."""
        return (node for node in ast.walk(self.tree) if isinstance(node, kinds))

    def names(self) -> Iterator[tuple[int, str]]:
        """(line, full dotted name) of everything imported or reached through an import."""
        known = _aliases(self.tree)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Name | ast.Attribute):
                yield node.lineno, full_name(node, known)

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call with the full dotted name of what is called ("" when it has none)."""
        known = _aliases(self.tree)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield node, full_name(node.func, known)

    def docstrings(self) -> set[int]:
        """Identities of the nodes that are docstrings."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                found.add(id(node.value))
        return found


Gate = Callable[[Source], Iterator[str]]


def full_name(node: ast.expr, known: dict[str, str]) -> str:
    """`sp.run` after `import subprocess as sp` is "subprocess.run"; "" for what has no name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ".".join(("?", *reversed(parts))) if parts else ""
    return ".".join((known.get(node.id, node.id), *reversed(parts)))


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _aliases(tree: ast.Module) -> dict[str, str]:
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return known


@cache
def tracked() -> tuple[str, ...]:
    """Every file under version control, or about to be (not ignored)."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return tuple(sorted(p for p in listed.stdout.splitlines() if (ROOT / p).is_file()))


@cache
def python(*folders: str) -> tuple[Source, ...]:
    """Every Python file of these top-level folders."""
    return tuple(
        Source(path, (ROOT / path).read_text("utf-8"))
        for path in tracked()
        if path.endswith(".py") and path.split("/")[0] in folders
    )


def product() -> tuple[Source, ...]:
    """Every Python file that is shipped."""
    return python(*PACKAGES)


def everything() -> tuple[Source, ...]:
    """Every Python file, tests and measurements included."""
    return python(*PACKAGES, "tests", "bench", "docs", "script")


def planted(text: str, path: str = "shared/planted.py") -> Source:
    """A file that is not there."""
    return Source(path, dedent(text))


def complaints(gate: Gate, sources: tuple[Source, ...]) -> list[str]:
    """What a gate has to say about these files; empty = it is green."""
    assert len(sources) > 20, "the gate looks at next to nothing"
    return [said for source in sources for said in gate(source)]


def red(gate: Gate, text: str, path: str = "shared/planted.py") -> list[str]:
    """What a gate says about planted code."""
    return list(gate(planted(text, path)))
