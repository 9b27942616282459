"""Who runs the embedded Postgres: ourselves, or, when we are root, somebody with fewer rights.

Postgres refuses to run as root. Files that only root should change stay root's: an account such
as `nobody` is shared with other programs.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from shared.errors import ConfigurationError


class Dropped(TypedDict, total=False):
    """Arguments of subprocess that start a program as another user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """The user that Postgres runs as. `name` is "" when it is the one we run as already."""

    name: str
    uid: int
    gid: int

    @classmethod
    def choose(cls, name: str) -> Account:
        """Ourselves, or the named user when we are root.

        Args:
            name: WEIRKEEPER_POSTGRES_USER.

        Raises:
            ConfigurationError: no such user, or it is root too.
        """
        if os.geteuid() != 0:
            return cls("", os.geteuid(), os.getegid())
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            entry = None
        if entry is None or entry.pw_uid == 0:
            raise ConfigurationError.of(
                "WEIRKEEPER_POSTGRES_USER",
                "a user of this machine other than root (Postgres refuses to run as root)",
                name,
                "set WEIRKEEPER_POSTGRES_USER, or start as an ordinary user",
            )
        return cls(name, entry.pw_uid, entry.pw_gid)

    @property
    def dropped(self) -> Dropped:
        """What subprocess needs to start a program as this account."""
        if not self.name:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can_run(self, program: Path) -> bool:
        """Whether the account can enter the program's folders and execute it."""
        found = subprocess.run(
            ["/bin/sh", "-c", 'test -x "$1"', "sh", str(program)],
            check=False,
            cwd="/",
            timeout=10,
            **self.dropped,
        )
        return found.returncode == 0

    def own_folder(self, path: Path) -> None:
        """Make a folder that only the account enters; take over one that is there."""
        path.mkdir(mode=0o700, exist_ok=True)
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        path.chmod(0o700)

    def become(self) -> None:
        """Drop to the account for good (in a process about to exec)."""
        if self.name:
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)
