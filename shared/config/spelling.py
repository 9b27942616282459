"""How a person who sits here calls our command line: one spelling in every hint.

Read by whatever tells somebody what to type next. In a checkout that is the script, which makes the
environment first and so works in a fresh clone; in an installation, the console script.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from shared.config.home import default_home

ROOT = Path(__file__).resolve().parents[2]


def command_line(home: Path | None = None) -> str:
    """What to type before a command's name.

    Args:
        home: WEIRKEEPER_HOME that the command is to find; None = whatever the shell has.
    """
    script = ROOT / "script" / "weirkeeper"
    command = "script/weirkeeper" if script.is_file() else "weirkeeper"
    if home is None or home == default_home():
        return command
    return f"WEIRKEEPER_HOME={quote(str(home))} {command}"
