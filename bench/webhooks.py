"""Deliveries a second of one queue process against bare loops that only POST, with one client.

Eight children beside eight processes, one receiver over TLS. A delivery is everything: lease,
reads, signatures, the request, settle, and the end of its job; the loops do the request alone.
Deliveries wait ready, spread over endpoints of which each takes one at a time; timed is from the
first attempt's start to the last one's end. Both take turns. A second table tells the CPU time of
a delivery, and of a call, by who spent it.
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
from bench.support.report import Result, finish, table
from bench.support.spent import sample, since
from bench.support.stack import server
from shared.postgres.driver.connect import Connection, connect
from tests.support.databases import Databases
from tests.support.processes import Programs
from tests.support.waiting import until

Spent = dict[str, float]  # CPU milliseconds by who spent them

CHILDREN = 8
SHARE = 0.55
# Cheap: whoever waits must not take the processor from what is measured.
DONE = "select not exists (select from weirkeeper.delivery where state = 'pending')"
DELIVERED = "select count(*) from weirkeeper.delivery where state = 'delivered'"
WARM = 0.1  # of the deliveries, before CPU time is counted
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
    spent: dict[str, list[Spent]] = {"deliveries": [], "bare posts": []}
    with https_receiver() as receiver, server() as databases:

        def ours() -> float:
            rate, each = _ours(databases, receiver, args.endpoints, args.deliveries)
            spent["deliveries"].append(each)
            return rate

        def bare() -> float:
            posts = bare_posts(receiver, CHILDREN, args.seconds)
            spent["bare posts"].append(posts.spent)
            return posts.rate

        taken = interleaved({"deliveries": ours, "bare posts": bare}, args.rounds)
    for what, rounds in spent.items():
        print(table((f"CPU of {what}", "ms each"), _medians(rounds)), end="\n\n")
    rows = [(what, len(each), min(each), median(each), max(each)) for what, each in taken.items()]
    result = Result(
        "webhooks", median(taken["deliveries"]), SHARE, "higher", median(taken["bare posts"]),
        relative=True,
    )  # fmt: skip
    return finish(("a second", "rounds", "least", "median", "most"), rows, result)


def _medians(rounds: Sequence[Spent]) -> list[tuple[str, float]]:
    """Each part's middle round, and that of their sums."""
    parts = [(name, median([each.get(name, 0.0) for each in rounds])) for name in rounds[0]]
    return [*parts, ("together", median([sum(each.values()) for each in rounds]))]


def _ours(
    databases: Databases, receiver: HttpsReceiver, number: int, deliveries: int
) -> tuple[float, Spent]:
    """Deliveries a second, and CPU milliseconds of one by who spent them."""
    url = databases.create()
    wanted = deliveries // number * number
    with (
        tempfile.TemporaryDirectory(prefix="wk-bench-") as folder,
        closing(connect(url, "b")) as conn,
    ):
        programs = Programs(Path(folder), url)
        programs.environment |= {**receiver.environment, "WEIRKEEPER_SECRET": SECRET}
        try:
            targets = endpoints(conn, receiver.url, number, receiver.environment)
            send(conn, targets, deliveries // number)
            queue = programs.start("workers", "webhook")
            watched = {"queue process": queue.pid, "receiver": receiver.pid}
            until(lambda: _delivered(conn) >= wanted * WARM, 60, "they are under way")
            before, first = sample(conn, watched), _delivered(conn)
            until(lambda: conn.execute(DONE).fetchone() == (True,), 300, "none is pending")
            after = since(before, sample(conn, watched))
            assert _delivered(conn) == wanted
            row = conn.execute(SPAN).fetchone()
            rate = wanted / float(str(row[0])) if row else 0.0
            return rate, {what: used * 1000 / (wanted - first) for what, used in after.items()}
        finally:
            programs.close()
            databases.drop(url)


def _delivered(conn: Connection) -> int:
    row = conn.execute(DELIVERED).fetchone()
    return int(str(row[0])) if row else 0
