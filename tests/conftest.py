"""Fixtures for all tests: a database of its own for each, and real processes.

One throwaway server is started for the session, which all pytest-xdist workers share.
WEIRKEEPER_TEST_PGBIN names the folder of other binaries for it (Debian's Postgres 15);
WEIRKEEPER_TEST_DATABASE_URL names a running server instead (its user must be able to create
databases).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import ThrowawayCluster
from tests.support.databases import Databases
from tests.support.folders import quick_folder
from tests.support.processes import Programs

OTHER_SERVER = "WEIRKEEPER_TEST_DATABASE_URL"
OTHER_BINARIES = "WEIRKEEPER_TEST_PGBIN"
SERVER = pytest.StashKey["SessionServer"]()


class SessionServer:
    """The server and the template of one session, started on first use."""

    def __init__(self, given: dict[str, str]) -> None:
        self._url = given.get("url", "")
        self._template = given.get("template", "")
        self._pgbin = given.get("pgbin", "")
        self._cluster: ThrowawayCluster | None = None
        self._owned: Databases | None = None

    def databases(self) -> Databases:
        """Where tests get their databases."""
        if self._owned is None:
            if not self._url:
                self._cluster = ThrowawayCluster(pgbin=self._pgbin)
                self._url = self._cluster.url
            self._owned = Databases(self._url, self._template)
        return self._owned

    def hand_on(self) -> dict[str, str]:
        """What an xdist worker needs to use the same server."""
        databases = self.databases()
        return {"url": databases.server_url, "template": databases.template}

    def close(self) -> None:
        """End what this process started."""
        if self._cluster is not None:
            self._cluster.stop()
        elif self._owned is not None and not self._template:
            self._owned.close()


def pytest_configure(config: pytest.Config) -> None:
    """Take the server that the controller, or the environment, names."""
    # Taken out of the environment, where our own programs would refuse it as an unknown setting.
    ours = {"url": os.environ.pop(OTHER_SERVER, ""), "pgbin": os.environ.pop(OTHER_BINARIES, "")}
    given = getattr(config, "workerinput", {}).get("server", ours)
    config.stash[SERVER] = SessionServer(given)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the controller, before an xdist worker starts: one server for all of them."""
    node.workerinput["server"] = node.config.stash[SERVER].hand_on()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the server with the session."""
    if SERVER in config.stash:
        config.stash[SERVER].close()


@pytest.fixture(scope="session")
def databases(request: pytest.FixtureRequest) -> Databases:
    """Makes databases on the session's server."""
    return request.config.stash[SERVER].databases()


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh, migrated database."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def empty_database_url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh database without our schema."""
    url = databases.create_empty()
    yield url
    databases.drop(url)


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A folder with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="wk-", dir=quick_folder()) as folder:
        yield Path(folder)


@pytest.fixture
def programs(short_tmp: Path, database_url: str) -> Iterator[Programs]:
    """Starts our programs against this test's database, in this test's home."""
    started = Programs(short_tmp, database_url)
    yield started
    started.close()
