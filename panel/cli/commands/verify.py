"""`weirkeeper verify`: do the rows keep the engine's promises? 0 = all of them, 1 = not."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict

from panel.cli.output import print_json
from panel.cli.terminal import Column, here
from shared.config.settings import Settings
from shared.postgres.driver.connect import Use, connect
from shared.postgres.inspection.verify import Mended, Violation, repair, rules, violations
from shared.postgres.schema.accepted import check_schema

HELP = "look for rows that break the engine's promises; exit 0 = none"
HOUR = 3600.0
COLUMNS = (Column("rule"), Column("subject"), Column("detail", gives=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--repair", action="store_true", help="mend what can be mended safely")
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")


def run(args: argparse.Namespace) -> int:
    """Look; mend if asked to, and look again; return 0 when no promise is broken (any more)."""
    settings = Settings.load()
    kept = settings.keep_completed_hours * HOUR
    with closing(connect(settings.database(), "verify", Use.HANDLER)) as conn:
        check_schema(conn)
        mended = repair(conn, kept) if args.repair else []
        left = violations(conn, kept)
    if args.json:
        print_json({"mended": [asdict(m) for m in mended], "violations": [asdict(v) for v in left]})
    else:
        _print(mended, left)
    return 1 if left else 0


def _print(mended: Sequence[Mended], left: Sequence[Violation]) -> None:
    for rule, subject, done in ((m.rule, m.subject, m.done) for m in mended):
        print(f"mended {rule} {subject}: {done}")
    if left:
        print(here().table(COLUMNS, [(v.rule, v.subject, v.detail) for v in left]))
    else:
        print(f"all {len(rules())} promises are kept")
