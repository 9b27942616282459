"""The table of operations: every one that there is, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import InvalidArguments
from shared.ops import corpus, events, tasks, webhooks
from shared.ops.desk import Desk
from shared.ops.operation import Operation

OPERATIONS: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        *corpus.OPERATIONS,
        *tasks.OPERATIONS,
        *events.OPERATIONS,
        *webhooks.OPERATIONS,
    )
}


def call(desk: Desk, name: str, arguments: Mapping[str, Any]) -> Any:
    """Run an operation.

    Args:
        desk: the caller's ports.
        name: of the operation.
        arguments: plain values.

    Raises:
        InvalidArguments: no such operation, or arguments that it cannot take.
    """
    operation = OPERATIONS.get(name)
    if operation is None:
        raise InvalidArguments(f"operation: expected one of {', '.join(OPERATIONS)}; got {name!r}")
    return operation.call(desk, arguments)
