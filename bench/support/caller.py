"""A process of its own that makes the calls of `bench/hostile.py` and tells what each costs.

Reads URLs from standard input; answers each with a line of JSON: seconds, bytes that its peak of
memory grew by, and what came out.
"""

from __future__ import annotations

import json
import sys
import time

from tests.support.calls import memory, reset_peak
from tests.support.receivers import Names, local_policy
from workers.sideeffects.http.client import GuardedClient
from workers.sideeffects.http.exchange import Limits, Outgoing

BODY = b"b" * 264 * 1024  # the largest that a delivery can have


def main(ca_file: str, seconds: float) -> None:
    """Call until there is no more line."""
    client = GuardedClient(local_policy(), ca_file=ca_file, resolver=Names())
    for line in sys.stdin:
        before, begun = reset_peak(), time.monotonic()
        outgoing = Outgoing("POST", line.strip(), body=BODY)
        found = client.send(outgoing, limits=Limits(seconds=seconds))
        spent = time.monotonic() - begun
        grown = memory("VmHWM") - before
        told = found.error or f"{found.status}, body {found.ended}"
        print(json.dumps({"seconds": spent, "bytes": grown, "told": told}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
