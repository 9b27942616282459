"""Folders of a server: ours alone, and sockets whose paths fit."""

from __future__ import annotations

import fcntl
import os
import stat

import pytest

from shared.errors import ConfigurationError
from weirkeeper.server import postmaster
from weirkeeper.server.account import Account
from weirkeeper.server.folders import digest, prepare_home, socket_folder
from weirkeeper.server.lock import only_server

US = Account("", os.geteuid(), os.getegid())


def test_a_home_is_made_for_us_alone(tmp_path):
    home = prepare_home(tmp_path / "a" / "b")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert all(stat.S_IMODE((home / n).stat().st_mode) == 0o700 for n in ("run", "log", "metrics"))
    assert prepare_home(home) == home


def test_a_home_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigurationError, match="not links"):
        prepare_home(tmp_path / "home")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_home_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", 65534, 65534)
    with pytest.raises(ConfigurationError, match="owned by user 65534"):
        prepare_home(tmp_path / "home")


def test_a_file_in_the_place_of_a_home_is_refused(tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(ConfigurationError, match="a folder that we can make"):
        prepare_home(tmp_path / "home")


@pytest.mark.parametrize("name", ["100%", "a; b", "a # b"])
def test_a_path_that_supervisord_cannot_hold_is_refused(tmp_path, name):
    with pytest.raises(ConfigurationError, match="a path without %"):
        prepare_home(tmp_path / name)


def test_sockets_lie_where_they_should_when_the_path_fits(tmp_path):
    assert socket_folder(tmp_path / "s", 20, US) == tmp_path / "s"


def test_sockets_move_when_the_path_is_too_long(tmp_path):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    found = socket_folder(long / "run", 20, US)
    try:
        assert len(str(found)) + 1 + 20 <= 107
        assert stat.S_IMODE(found.stat().st_mode) == 0o700
        assert socket_folder(long / "run", 20, US) == found
    finally:
        found.rmdir()


def test_a_short_folder_that_somebody_planted_is_refused(tmp_path):
    long = tmp_path / ("y" * 100) / "run"
    planted = tmp_path.__class__(f"/tmp/weirkeeper-{digest(long)}")
    planted.symlink_to(tmp_path)
    try:
        with pytest.raises(ConfigurationError, match="to be ours"):
            socket_folder(long, 20, US)
    finally:
        planted.unlink()


def test_one_server_a_home(tmp_path):
    home = prepare_home(tmp_path / "home")
    with (
        only_server(home),
        pytest.raises(ConfigurationError, match=f"used by process {os.getpid()}'"),
        only_server(home),
    ):
        pass
    with only_server(home):
        pass
    assert (home / "run" / "server.lock").read_text() == "", "nobody is told of one that is gone"


def test_a_server_that_is_just_starting_is_told_as_such(tmp_path):
    """It has the home, and has not said who it is yet."""
    home = prepare_home(tmp_path / "home")
    with (home / "run" / "server.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ConfigurationError, match="used by one that is just starting"):
            only_server(home).__enter__()


@pytest.mark.parametrize(
    "left",
    ["", "x", f"{os.getpid()}\n/elsewhere\n0\n5432\n", f"{os.getpid()}\n{{data}}\n0\n5432\n"],
    ids=["empty", "noise", "another folder", "a pid that is now another program's"],
)
def test_a_left_over_pid_file_is_no_postmaster(tmp_path, left):
    (tmp_path / "postmaster.pid").write_text(left.format(data=tmp_path))
    assert postmaster.find(tmp_path) is None
