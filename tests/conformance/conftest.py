"""Every test of the contract runs on every adapter."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.engines import Bench, MemoryEngine, PostgresEngine
from tests.support.app import EFFECTS
from tests.support.databases import Databases


@pytest.fixture(scope="session")
def standing(databases: Databases) -> Iterator[PostgresEngine]:
    """One database and its queue processes, for all tests of the session."""
    url = databases.create()
    with tempfile.TemporaryDirectory(prefix="wk-") as folder:
        engine = PostgresEngine(Path(folder), url)
        try:
            yield engine
        finally:
            engine.close()
            databases.drop(url)


@pytest.fixture(params=["memory", "postgres"])
def bench(
    request: pytest.FixtureRequest, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> Bench:
    """The contract's view of one adapter."""
    if request.param == "postgres":
        return Bench(request.getfixturevalue("standing"))
    monkeypatch.setenv(EFFECTS, str(short_tmp / "effects"))
    return Bench(MemoryEngine(short_tmp))
