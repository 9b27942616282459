"""An operation, declared once: its name, typed arguments, result and one function.

Every face (command line, and later page and MCP) calls operations and nothing below them, so that
they agree in names, checks and rights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from shared.errors import InvalidArguments
from shared.ops.desk import Desk

CALLERS = ("owner",)


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the table.

    Attributes:
        name: `area.verb`.
        summary: what it does, one sentence.
        arguments: a msgspec.Struct: what it may be given.
        result: what it returns, a msgspec.Struct or a list of them.
        run: the function.
        caller: who may call it.
        writes: it changes something.
    """

    name: str
    summary: str
    arguments: type[msgspec.Struct]
    result: Any
    run: Callable[[Desk, Any], Any]
    caller: str = "owner"
    writes: bool = False

    def call(self, desk: Desk, arguments: Mapping[str, Any]) -> Any:
        """Check plain arguments and run.

        Raises:
            InvalidArguments: an unknown argument, or one of another type.
        """
        try:
            typed = msgspec.convert(dict(arguments), self.arguments, strict=True)
        except msgspec.ValidationError as error:
            raise InvalidArguments(f"{self.name}: {error}") from error
        return self.run(desk, typed)
