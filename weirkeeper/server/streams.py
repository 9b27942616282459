"""Whether logs that go to supervisord's standard output can arrive there.

supervisord opens the path that `stdout_logfile` names. `/dev/fd/1` cannot be opened when it is a
socket (systemd's journal): no program would start. A file opened with `>` is written from two
places at once, and lines are lost; with `>>` each write goes to the end.
"""

from __future__ import annotations

import fcntl
import os
import stat
from configparser import RawConfigParser

from shared.errors import ConfigurationError
from weirkeeper.server.compose import programs

STANDARD = {"/dev/fd/1": 1, "/dev/stdout": 1, "/dev/fd/2": 2, "/dev/stderr": 2}
REMEDY = "leave stdout_logfile as it ships (HOME/log), "


def check_streams(parser: RawConfigParser) -> None:
    """Refuse logs to a standard stream of ours that would not take them.

    Args:
        parser: the configuration as supervisord will read it, with the streams that we have.

    Raises:
        ConfigurationError: the first program whose log would be lost.
    """
    for name in programs(parser):
        path = parser[f"program:{name}"].get("stdout_logfile", "")
        wrong = _wrong(STANDARD[path]) if path in STANDARD else None
        if wrong:
            got, remedy = wrong
            raise ConfigurationError.of(
                f"supervisord.conf, program:{name} stdout_logfile={path}",
                "a terminal, a pipe, or a file opened to append",
                got,
                REMEDY + remedy,
            )


def _wrong(descriptor: int) -> tuple[str, str] | None:
    """What the stream is and what to do about it; None = it will do."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISSOCK(mode):
        return "a socket, which cannot be opened", "or give it a file (StandardOutput=append:PATH)"
    if stat.S_ISREG(mode) and not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND:
        return "a file opened with >", "or open it with >>"
    return None
