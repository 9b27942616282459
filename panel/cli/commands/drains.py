"""`weirkeeper drains`: how the last stops went, of every process; the log of deploys."""

from __future__ import annotations

import argparse
from contextlib import closing

from panel.cli.drains_told import plain, print_drains
from panel.cli.output import print_json
from panel.cli.parsing import whole
from shared.config.settings import Settings
from shared.postgres.driver.connect import Use, connect
from shared.postgres.processes.drains import drains
from shared.postgres.schema.accepted import check_schema

HELP = "show how the last stops went: seconds by phase, jobs by what became of them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--slot", metavar="NAME", help="stops of this slot alone")
    parser.add_argument("--limit", type=whole, default=20, metavar="N", help="at most so many (20)")
    parser.add_argument("--json", action="store_true", help="print one JSON array, for programs")


def run(args: argparse.Namespace) -> int:
    """Print the stops, newest first; return 0."""
    limit = min(max(args.limit, 1), 1000)
    with closing(connect(Settings.load().database(), "drains", Use.READ)) as conn:
        check_schema(conn)
        rows = drains(conn, args.slot, limit)
    if args.json:
        print_json([plain(row) for row in rows])
    elif rows:
        print_drains(rows)
    else:
        print("no process has stopped in order yet")
    return 0
