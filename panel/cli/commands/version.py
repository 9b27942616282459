"""`weirkeeper version`: what runs here, and on which schema. Answers without a database too."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version

from shared.config.settings import Settings
from shared.config.spelling import command_line
from shared.errors import WeirkeeperError
from shared.postgres.driver.connect import Use, connect
from shared.postgres.schema.migrator import applied, migrations

HELP = "show versions of Weirkeeper, Python, driver and schema"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments: none."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Print the versions; return 0."""
    del args
    print(f"weirkeeper {version('weirkeeper')}")
    print(f"python     {platform.python_version()}")
    print(f"psycopg    {version('psycopg')}")
    print(f"schema     {_schema()}")
    return 0


def _schema() -> str:
    """The schema that this build knows, and that of the database if one answers."""
    known = f"{migrations()[-1].version:04} in this build"
    settings = Settings.load()
    if not settings.direct_url:
        return (
            f"{known}; no database: start one with `{command_line()} server`, or set DATABASE_URL"
        )
    try:
        with connect(settings.direct_url, "version", Use.READ) as conn:
            have = applied(conn)
            server = conn.info.server_version
    except WeirkeeperError as error:
        return f"{known}; the database does not answer: {str(error).splitlines()[0]}"
    newest = f"{have[-1][0]:04}" if have else f"none: run `{command_line()} migrate`"
    return f"{known}; {newest} in the database (Postgres {server // 10000}.{server % 10000})"
