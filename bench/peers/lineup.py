"""Who takes part: ours, and the rivals that can be had here; one server, a database each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from bench.peers import install
from bench.peers.rival import Rival, peer
from bench.support.contestant import Entry
from bench.support.ours import Ours, ours
from bench.support.stack import server

OURS = Ours.name
GRAPHILE = "Graphile Worker"
PGQUEUER = "PgQueuer"
RIVALS: Mapping[str, tuple[Callable[[], list[str]], str, bool]] = {
    GRAPHILE: (
        install.graphile,
        "select exists (select from graphile_worker._private_jobs)",
        False,
    ),
    PGQUEUER: (install.pgqueuer, "select exists (select from pgqueuer)", True),
}


def arguments(name: str, about: str | None, rounds: int) -> argparse.ArgumentParser:
    """The options that every comparison has."""
    parser = argparse.ArgumentParser(f"script/bench {name}", description=about)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"of each ({rounds})")
    parser.add_argument("--alone", action="store_true", help="without the rivals")
    return parser


@contextmanager
def lineup(alone: bool) -> Iterator[dict[str, Entry]]:
    """Contestants by name; ours is always the first.

    Args:
        alone: leave the rivals out.
    """
    rivals = [] if alone else list(_rivals())
    with server() as databases:
        entries: dict[str, Entry] = {OURS: partial(ours, databases)}
        entries.update((rival.name, partial(peer, rival, databases)) for rival in rivals)
        yield entries


def _rivals() -> Iterator[Rival]:
    for name, (prepared, unfinished, waits) in RIVALS.items():
        try:
            yield Rival(name, prepared(), unfinished, waits)
        except install.Unavailable as error:
            print(f"bench: without {name}: {error}", file=sys.stderr)
