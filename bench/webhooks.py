"""Deliveries a second of one queue process against bare loops that only POST, with one client.

Eight children beside eight processes, one receiver over TLS. A delivery is everything: lease,
reads, signatures, the request, settle, and the end of its job; the loops do the request alone.
Deliveries wait ready, spread over endpoints of which each takes one at a time; timed is from the
first attempt's start to the last one's end. Both take turns.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.support.bare_posts import HttpsReceiver, bare_posts, https_receiver
from bench.support.figures import interleaved, median
from bench.support.hooks import SECRET, endpoints, send
from bench.support.report import Result, finish
from bench.support.stack import server
from shared.postgres.connect import connect
from tests.support.databases import Databases
from tests.support.processes import Programs
from tests.support.waiting import until

CHILDREN = 8
SHARE = 0.55
# Cheap: whoever waits must not take the processor from what is measured.
DONE = "select not exists (select from weirkeeper.delivery where state = 'pending')"
DELIVERED = "select count(*) from weirkeeper.delivery where state = 'delivered'"
SPAN = (
    "select extract(epoch from max(finished_at) - min(started_at))::float"
    " from weirkeeper.delivery_attempt"
)


def main(argv: Sequence[str]) -> int:
    """Measure; return 1 when the target was missed."""
    parser = argparse.ArgumentParser("script/bench webhooks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of both (5)")
    parser.add_argument("--deliveries", type=int, default=2000, help="a round (2,000)")
    parser.add_argument("--endpoints", type=int, default=40, help="that they are spread over (40)")
    parser.add_argument("--seconds", type=float, default=5, help="of the bare loops a round (5)")
    args = parser.parse_args(argv)
    with https_receiver() as receiver, server() as databases:
        taken = interleaved(
            {
                "deliveries": lambda: _ours(databases, receiver, args.endpoints, args.deliveries),
                "bare posts": lambda: bare_posts(receiver, CHILDREN, args.seconds),
            },
            args.rounds,
        )
    rows = [(what, len(each), min(each), median(each), max(each)) for what, each in taken.items()]
    ours, bare = median(taken["deliveries"]), median(taken["bare posts"])
    result = Result("webhooks", ours, SHARE, "higher", bare, relative=True)
    return finish(("a second", "rounds", "least", "median", "most"), rows, result)


def _ours(databases: Databases, receiver: HttpsReceiver, number: int, deliveries: int) -> float:
    url = databases.create()
    with (
        tempfile.TemporaryDirectory(prefix="wk-bench-") as folder,
        closing(connect(url, "b")) as conn,
    ):
        programs = Programs(Path(folder), url)
        programs.environment |= {**receiver.environment, "WEIRKEEPER_SECRET": SECRET}
        try:
            targets = endpoints(conn, receiver.url, number, receiver.environment)
            send(conn, targets, deliveries // number)
            programs.start("workers", "webhook")
            wanted = deliveries // number * number
            until(lambda: conn.execute(DONE).fetchone() == (True,), 300, "none is pending")
            assert conn.execute(DELIVERED).fetchone() == (wanted,)
            row = conn.execute(SPAN).fetchone()
            return wanted / float(str(row[0])) if row else 0.0
        finally:
            programs.close()
            databases.drop(url)
