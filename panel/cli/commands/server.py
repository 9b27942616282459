"""`weirkeeper server`: everything in the foreground, until Ctrl-C. The work: weirkeeper.server."""

from __future__ import annotations

import argparse
import signal

from weirkeeper.server import main

HELP = "start Postgres, schema and every process in the foreground"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--check", action="store_true", help="check everything, start nothing")
    main.add_receiver_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the server to its end; return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as SIGTERM, while the application is imported
    given = {"--check": args.check, "--local-receiver": args.local_receiver}
    return main.main([name for name, wanted in given.items() if wanted])
