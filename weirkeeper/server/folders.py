"""Where things lie: the home folder, Postgres' own folder, and sockets with short enough paths.

    HOME (0700, ours)      run/ log/ metrics/ conf/, postgres.password
    base                   postgres/ (data) socket/ postgres.conf

`base` is HOME itself. When root starts us, Postgres runs as another user, which cannot enter a
home of mode 0700: then base is /var/lib/weirkeeper/<hash of HOME>, and HOME/postgres links to it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from shared.errors import ConfigurationError
from weirkeeper.server.account import Account
from weirkeeper.server.binaries import SHARED, open_folder

FOLDERS = ("run", "log", "metrics", "conf")
LONGEST_SOCKET_PATH = 107  # bytes, of Linux's sockaddr_un


def check_home(home: Path) -> None:
    """Refuse a home that `prepare_home` would refuse, without making anything.

    Raises:
        ConfigurationError: a path that supervisord cannot read, a link, or somebody else's.
    """
    if any(sign in str(home) for sign in "%;#\n"):
        raise ConfigurationError.of(
            "WEIRKEEPER_HOME",
            "a path without % ; # (supervisord's configuration cannot hold them)",
            str(home),
            "set WEIRKEEPER_HOME to another folder",
        )
    try:
        for path in (home, *(home / name for name in FOLDERS)):
            with suppress(FileNotFoundError, NotADirectoryError):
                _refuse_foreign(path)
        above = next(path for path in (home, *home.parents) if path.exists())
    except OSError as error:
        raise _cannot_be(home, str(error.strerror)) from error
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise _cannot_be(home, f"{above} is no folder that we can write")


def prepare_home(home: Path) -> Path:
    """Make the home folder and what belongs in it; return it.

    Raises:
        ConfigurationError: it is a link, somebody else's, or cannot be made.
    """
    check_home(home)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_foreign(home)
        home.chmod(0o700)
        for name in FOLDERS:
            (home / name).mkdir(mode=0o700, exist_ok=True)
            _refuse_foreign(home / name)
    except OSError as error:
        raise _cannot_be(home, str(error.strerror)) from error
    return home


def postgres_base(home: Path, account: Account) -> Path:
    """The folder that holds Postgres' data, made so that the account can enter it."""
    if not account.name:
        return home
    base = SHARED / digest(home)
    open_folder(SHARED, 0o755)
    open_folder(base, 0o711)
    _refuse_foreign(base)
    (base / "home").write_text(f"{home}\n")  # for people: whose data this is
    link = home / "postgres"
    if not link.is_symlink() and not link.exists():
        link.symlink_to(base / "postgres")
    return base


def socket_folder(preferred: Path, longest_name: int, account: Account) -> Path:
    """A folder that only the account enters, for sockets whose names have that many bytes.

    Args:
        preferred: taken when the path fits; else a short one under /tmp stands in.
        longest_name: bytes of the longest file name in it.
        account: who owns it.

    Raises:
        ConfigurationError: somebody else has made the short one.
    """
    if len(os.fsencode(preferred)) + 1 + longest_name > LONGEST_SOCKET_PATH:
        preferred = Path(f"/tmp/weirkeeper-{digest(preferred)}")  # noqa: S108  (checked below)
    if preferred.is_symlink() or (preferred.exists() and _owner(preferred) not in _us(account)):
        raise ConfigurationError.of(
            "folder for sockets",
            f"{preferred} to be ours",
            f"one of user {_owner(preferred)}",
            "remove it, or set WEIRKEEPER_HOME to a shorter path",
        )
    account.own_folder(preferred)
    return preferred


def forget_sockets(folder: Path, home: Path) -> None:
    """Remove a folder for sockets that is not in the home, once it is empty."""
    if home not in folder.parents:
        with suppress(OSError):
            folder.rmdir()


def digest(path: Path) -> str:
    """A short name for a path."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]


def _us(account: Account) -> tuple[int, int]:
    return (os.geteuid(), account.uid)


def _owner(path: Path) -> int:
    return path.lstat().st_uid


def _cannot_be(home: Path, why: str) -> ConfigurationError:
    return ConfigurationError.of(
        "WEIRKEEPER_HOME",
        "a folder that we can make and write",
        f"{home} ({why})",
        "set WEIRKEEPER_HOME to a folder of yours",
    )


def _refuse_foreign(path: Path) -> None:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
        what = "a link" if stat.S_ISLNK(found.st_mode) else f"owned by user {found.st_uid}"
        raise ConfigurationError.of(
            "WEIRKEEPER_HOME",
            f"folders owned by user {os.geteuid()}, not links",
            f"{path} is {what}",
            "set WEIRKEEPER_HOME to a folder of yours",
        )
