"""SQL by name: `statement("claims/claim")` is the text of sql/claims/claim.sql.

Stands between every adapter and its SQL: no adapter holds SQL in a Python string. Texts are read
once. A test asserts that each file is used exactly once.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import LiteralString


@cache
def statement(name: str) -> LiteralString:
    """The text of one statement.

    Args:
        name: "<area>/<method>", a file under sql/ without its suffix.

    Raises:
        FileNotFoundError: no such statement.
    """
    area, _, method = name.partition("/")
    return (files("shared.postgres") / "sql" / area / f"{method}.sql").read_text("utf-8")
