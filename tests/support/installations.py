"""Another installation beside the default one, in the same database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from shared.config.installation import SETTING, schema_name
from shared.postgres.application.enqueueing import texts
from shared.postgres.driver.statements import statement

SECOND = "second_one"


@contextmanager
def installation(name: str) -> Iterator[None]:
    """Within the block, this process belongs to the installation of that name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTING, name)
        _forget()
        try:
            yield
        finally:
            patch.undo()
            _forget()


def _forget() -> None:
    schema_name.cache_clear()
    statement.cache_clear()
    texts.cache_clear()
