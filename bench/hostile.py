"""What a hostile receiver costs who calls it: how long the call lasts, how much memory it takes.

Each receiver is called over plain http and over TLS, with the largest body that a delivery can
have, by a process of its own with the limits of webhooks. Judged are the longest call, which must
have ended half a second after its deadline, and the largest growth of that process's memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.support.report import Result, finish
from tests.support import receivers as r
from tests.support.hostile import HOSTILE

SLACK = 0.5  # seconds after the deadline
MEMORY = 20.0  # MiB
IN_TLS = {
    "TLS: silent": r.never_speaks_tls,
    "TLS: trickled": r.trickled_tls,
    "TLS: endless": r.endless_tls,
}


class Caller:
    """The process that calls."""

    def __init__(self, ca_file: str, seconds: float) -> None:
        command = [sys.executable, "-m", "bench.support.caller", ca_file, str(seconds)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def call(self, url: str) -> dict[str, Any]:
        """Have one call made."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(url + "\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def _receivers(authority: r.Authority) -> Iterator[tuple[str, str, r.Receiver]]:
    """(name, scheme, receiver) of each."""
    cases = {name: behaviour for name, (behaviour, *_) in HOSTILE.items()}
    for name, behaviour in {**cases, "never reads": r.never_reads}.items():
        small = name == "never reads"
        yield name, "http", r.Receiver(behaviour, small=small)
        yield name, "https", r.Receiver(behaviour, authority.server(r.NAME), small=small)
    for name, behaviour in IN_TLS.items():
        yield name, "https", r.Receiver(behaviour)


def _measured(seconds: float) -> list[tuple[str, str, str, float, float]]:
    authority = r.Authority()
    rows = []
    with tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        caller = Caller(authority.write(str(Path(folder) / "ca.pem")), seconds)
        for scheme in ("http", "https"):  # what is loaded once is no cost of the hostile ones
            context = authority.server(r.NAME) if scheme == "https" else None
            with r.Receiver(r.Recording(), context) as good:
                caller.call(f"{scheme}://{r.NAME}:{good.port}/")
        for name, scheme, receiver in _receivers(authority):
            with receiver:
                told = caller.call(f"{scheme}://{r.NAME}:{receiver.port}/")
            rows.append((name, scheme, told["told"], told["seconds"], told["bytes"] / 2**20))
        caller.close()
    return rows


def main(argv: Sequence[str]) -> int:
    """Measure; return 0 when both targets were met."""
    parser = argparse.ArgumentParser("script/bench hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="deadline of a call (10)")
    args = parser.parse_args(argv)
    rows = _measured(args.seconds)
    memory = Result("memory", max(row[4] for row in rows), MEMORY, "lower")
    longest = max(row[3] for row in rows)
    return finish(
        ("receiver", "over", "what came out", "seconds", "MiB more"),
        rows,
        Result("hostile", longest, args.seconds + SLACK, "lower", also=(memory,)),
    )
