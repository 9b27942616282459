"""`weirkeeper drain`: the orderly stop that `supervisorctl stop all` is not; rest for old releases.

Without options it asks this home's supervisord to stop the relay, then all queues together, and
waits. With --generation it asks processes of other releases, on every host, to start nothing more
while the new one works; they stay, so that --undo can have them work again.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from panel.cli.drains_told import plain, print_drains
from panel.cli.output import complain, print_json
from shared.clock import SYSTEM
from shared.config.settings import Settings
from shared.errors import ConfigurationError
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.processes.drains import drains
from shared.postgres.processes.registry import (
    LEASE,
    Asked,
    ask_to_rest,
    ask_to_work,
    busy,
    processes,
)
from shared.postgres.schema.accepted import check_schema
from shared.services import exit_codes
from shared.services.process import ProcessIdentity, identity
from shared.services.supervision import Supervision

HELP = "stop the relay, then all queues together, and wait; or have an older release rest"
GROUPS = ("relay", "queues")
OTHERS = 15.0  # seconds beside drain and grace until supervisord's answer is given up
LOOK = 0.1  # seconds between looks at whether resting processes still hold jobs
OLD = "old"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--generation",
        metavar="old|NAME",
        help="ask processes of every other release (old), or of this one, to start nothing more",
    )
    which.add_argument(
        "--undo", action="store_true", help="have those that rest work again: the roll back"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")


def run(args: argparse.Namespace) -> int:
    """Do it; return 0, or 75 when something was killed or still runs."""
    settings = Settings.load()
    with closing(connect(settings.database(), "drain", Use.DURABLE)) as conn:
        check_schema(conn)
        tell: Callable[[str], None] = complain if args.json else print
        if args.undo:
            return _undone(ask_to_work(conn), tell, as_json=args.json)
        if args.generation:
            return _rest(conn, settings, args, tell)
        return _stop(conn, settings, tell, as_json=args.json)


def _stop(
    conn: Connection, settings: Settings, tell: Callable[[str], None], *, as_json: bool
) -> int:
    supervision = Supervision(settings.home)
    supervision.programs()  # refuses before anything is stopped
    living = {row["epoch"]: row["slot"] for row in processes(conn) if _is_here(row)}
    patience = settings.drain_seconds + settings.grace_seconds + OTHERS
    for group in GROUPS:
        began = SYSTEM.monotonic()
        supervision.stop_group(group, patience)
        tell(f"{group} stopped after {SYSTEM.monotonic() - began:.1f} s")
    rows = [row for row in drains(conn, limit=1000) if row["epoch"] in living]
    untold = sorted(set(living.values()) - {row["slot"] for row in rows})
    if as_json:
        print_json({"stops": [plain(row) for row in rows], "killed": untold})
    elif rows:
        print_drains(rows)
    if untold:
        complain(f"ended without a word, their jobs are rescued: {', '.join(untold)}")
    return exit_codes.DRAIN_OVERRAN if untold else exit_codes.OK


def _is_here(row: Mapping[str, Any]) -> bool:
    """Whether it is a queue process or relay of this host, and lives as far as its row knows."""
    names = ("host", "boot_id", "pid_namespace", "pid", "pid_started")
    who = ProcessIdentity(**{name: row[name] for name in names})
    return (
        row["role"] in ("queue", "relay")
        and row["phase"] != "stopped"
        and row["beat_age"] < LEASE
        and identity().same_host(who)
    )


def _rest(
    conn: Connection, settings: Settings, args: argparse.Namespace, tell: Callable[[str], None]
) -> int:
    stays, only = settings.generation, None if args.generation == OLD else args.generation
    _check_successors(processes(conn), stays, only)
    asked = ask_to_rest(conn, stays, only)
    left = _settled(conn, asked, settings.drain_seconds + settings.grace_seconds)
    if args.json:
        shown = [{"slot": a.slot, "host": a.host, "generation": a.generation} for a in asked]
        print_json({"stays": stays, "resting": shown, "jobs_left": left})
    elif not asked:
        tell(f"nothing but generation {stays} runs")
    else:
        names = ", ".join(f"{a.slot}@{a.host} ({a.generation})" for a in asked)
        tell(f"{names}: start nothing more; generation {stays} works")
        tell(f"{left} jobs still run there" if left else "no job runs there: they can be stopped")
    return exit_codes.DRAIN_OVERRAN if left else exit_codes.OK


def _check_successors(rows: Sequence[Mapping[str, Any]], stays: str, only: str | None) -> None:
    """Refuse to have anything rest whose work nobody would do."""
    if only == stays:
        raise ConfigurationError.of(
            "--generation", "another generation than this one", only, "set WEIRKEEPER_GENERATION"
        )
    living = [r for r in rows if r["phase"] != "stopped" and r["beat_age"] < LEASE]
    work = [r for r in living if r["role"] in ("queue", "relay")]
    ready = _places(r for r in work if r["generation"] == stays and r["phase"] == "ready")
    wanted = _places(
        r for r in work if r["generation"] != stays and only in (None, r["generation"])
    )
    if wanted - ready:
        raise ConfigurationError.of(
            "--generation",
            f"ready processes of generation {stays} for what is to rest",
            f"none for {', '.join(sorted(wanted - ready))}",
            "start them first, or set WEIRKEEPER_GENERATION to what runs",
        )


def _places(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """What these processes do; one may serve several queues."""
    return {name for row in rows for name in str(row["queue"] or row["role"]).split(",")}


def _settled(conn: Connection, asked: Sequence[Asked], seconds: float) -> int:
    """Wait until those that rest hold no job; return how many they still hold."""
    epochs = [a.epoch for a in asked]
    deadline = SYSTEM.monotonic() + seconds
    pause = threading.Event()
    while left := _unsettled(conn, epochs):
        if SYSTEM.monotonic() > deadline:
            break
        pause.wait(LOOK)
    return left


def _unsettled(conn: Connection, epochs: Sequence[int]) -> int:
    """Jobs that they hold; one that has not heard yet may take more, and counts as one."""
    heard = {r["epoch"] for r in processes(conn) if r["phase"] in ("draining", "stopped")}
    deaf = sum(1 for epoch in epochs if epoch not in heard)
    return sum(busy(conn, epochs).values()) + deaf


def _undone(again: Sequence[Asked], tell: Callable[[str], None], *, as_json: bool) -> int:
    names = [f"{a.slot}@{a.host} ({a.generation})" for a in again]
    if as_json:
        print_json({"working": names})
    else:
        tell(f"{', '.join(names)}: works again" if names else "nothing rested")
    return exit_codes.OK
