"""The text of docs/operations_table.md, made from the table of operations.

`python -m tests.support.operations_table` writes it anew; a test keeps the two equal.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from shared.ops.operation import Operation
from shared.ops.table import OPERATIONS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "operations_table.md"
INTRODUCTION = """\
# Every operation

Each is declared once, in `shared/ops`, and every face calls the same function. Written by
`python -m tests.support.operations_table`; a test keeps it equal to the code.

| operation | what it does | arguments | who | writes |
|---|---|---|---|---|
"""


def document() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(map(_row, OPERATIONS.values()))


def _row(operation: Operation) -> str:
    writes = "yes" if operation.writes else ""
    arguments = ", ".join(_argument(field) for field in msgspec.structs.fields(operation.arguments))
    cells = (f"`{operation.name}`", operation.summary, arguments, operation.caller, writes)
    return "| " + " | ".join(cells) + " |\n"


def _argument(field: msgspec.structs.FieldInfo) -> str:
    return f"**{field.encode_name}**" if field.required else field.encode_name


if __name__ == "__main__":
    DOCUMENT.write_text(document(), "utf-8")
