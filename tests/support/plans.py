"""Plans: what a session really did, nested statements of functions included, as auto_explain tells.

Needs a superuser, as whom the tests' own server is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg.errors import Diagnostic

from shared.postgres.driver.connect import Connection

SETTINGS = {
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "client_min_messages": "log",
}
NEXT = "select"


@dataclass(frozen=True)
class Plan:
    """One statement as it was carried out."""

    text: str
    root: dict[str, Any]

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Every node of the plan."""
        todo = [self.root]
        while todo:
            node = todo.pop()
            yield node
            todo += node.get("Plans", [])

    @property
    def pages(self) -> int:
        """Pages of shared memory that it touched, with all that it called."""
        return self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"]

    def bad(self, big: frozenset[str]) -> list[str]:
        """What no plan may do with a big table: read it whole, hash or merge it, walk an index."""
        return [said for node in self.nodes() if (said := _bad(node, big))]


def _bad(node: dict[str, Any], big: frozenset[str]) -> str | None:
    kind, table = node["Node Type"], node.get("Relation Name")
    if kind == "Seq Scan" and table in big:
        return f"reads {table} whole"
    if kind in ("Hash Join", "Merge Join") and (sides := _sides(node) & big):
        return f"{kind} of {', '.join(sides)}"
    return None


def _sides(join: dict[str, Any]) -> set[str]:
    """Tables that a join reads by itself; those of a look-up for each row are none of them."""
    found = set()
    for child in join.get("Plans", []):
        node = child
        while node["Node Type"] in ("Hash", "Sort", "Incremental Sort", "Materialize"):
            [node] = node["Plans"]
        found.add(node.get("Relation Name", ""))
    return found


class Watch:
    """Collects the plans of one session, which prepares all statements at once and keeps them.

    Args:
        conn: of a superuser.
    """

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        conn.prepare_threshold = 0
        self._said: list[str] = []
        conn.add_notice_handler(self._hear)
        conn.execute("load 'auto_explain'")

    def _hear(self, diag: Diagnostic) -> None:
        self._said.append(diag.message_primary or "")

    @contextmanager
    def plans(self) -> Iterator[list[Plan]]:
        """What the session does inside is in the list after the block; nothing of it stays."""
        found: list[Plan] = []
        # Past the driver, which drops all that is prepared when it rolls back.
        self._conn.pgconn.exec_(b"begin")
        try:
            for name, value in SETTINGS.items():
                self._conn.execute("select set_config(%s, %s, true)", (name, value), prepare=False)
            self._said.clear()
            yield found
            self._conn.execute(NEXT)  # a statement is told of when another takes its place
            found += [p for said in self._said if (p := _read(said)) and p.text != NEXT]
        finally:
            self._conn.pgconn.exec_(b"rollback")


def _read(said: str) -> Plan | None:
    start = said.find("{")
    if "plan:" not in said or start < 0:
        return None
    told = json.loads(said[start:])
    return Plan(told["Query Text"], told["Plan"])
