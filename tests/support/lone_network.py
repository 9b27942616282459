"""Calls from a network of their own, where nothing but this process can send a packet.

`unshare --map-root-user --mount --net python -P -m tests.support.lone_network WHAT` prints one line of
JSON. Every address there is this machine's, so that whatever leaves passes its one interface and is
counted. `rebinding`: the system's resolver asks a name server whose answers change, with a TTL of 0: an
address that may be called, one that may not, both. `refused`: URLs from the standard input.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

from tests.support import receivers as r
from tests.support.calls import SHORT, post
from workers.sideeffects.http.client import GuardedClient
from workers.sideeffects.http.exchange import Outgoing

SERVER, OUTSIDE, INSIDE = "127.0.0.53", "127.0.0.2", "127.0.0.1"
TURNS = ((OUTSIDE,), (INSIDE,), (OUTSIDE, INSIDE))
CALLS = 1000
A = 1  # the type of a record that holds an IPv4 address


class NameServer:
    """Answers each question about an address with the next of its answers."""

    def __init__(self) -> None:
        self._turns = cycle(TURNS)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((SERVER, 53))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            query, whom = self._socket.recvfrom(4096)
            self._socket.sendto(self._answer(query), whom)

    def _answer(self, query: bytes) -> bytes:
        end = query.index(b"\0", 12) + 5  # of the question: name, type, class
        (kind,) = struct.unpack("!H", query[end - 4 : end - 2])
        addresses = next(self._turns) if kind == A else ()
        head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, len(addresses), 0, 0)
        records = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 0, 4) + socket.inet_aton(one)
            for one in addresses
        )
        return head + query[12:end] + records


def rebinding() -> dict[str, int]:
    """A thousand calls to a name that changes its mind; what came of them, and who was connected to."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"nameserver {SERVER}\noptions timeout:1 attempts:2\n")
        file.flush()
        _run("mount", "--bind", file.name, "/etc/resolv.conf")
        NameServer()
        client = GuardedClient(r.local_policy(ALLOW=f"{OUTSIDE}/32"))
        with ExitStack() as stack:
            outside = stack.enter_context(r.Receiver(r.Recording(), host=OUTSIDE))
            inside = stack.enter_context(r.Receiver(r.Recording(), host=INSIDE, port=outside.port))
            url = f"http://{r.NAME}:{outside.port}/"
            found = Counter(post(client, url).error or "delivered" for _ in range(CALLS))
            return {**found, "outside": outside.connections, "inside": inside.connections}


def refused() -> dict[str, int]:
    """Call each URL of the standard input; packets that left then, and with one that may be called."""
    cases = json.load(sys.stdin)
    errors: Counter[str] = Counter()
    before = _packets()
    for case in cases:
        given = case["policy"]
        policy = r.local_policy(
            ALLOW=",".join(given.get("allow_networks", [])),
            HTTP="yes" if given.get("allow_http") else "",
            NAT64="yes" if given.get("nat64") else "",
            PORTS=",".join(map(str, given.get("ports", []))),
        )
        client = GuardedClient(policy, resolver=r.Names(case["dns"]))
        errors[client.send(Outgoing("POST", case["url"]), limits=SHORT).error] += 1
    after = _packets()
    allowed = GuardedClient(r.local_policy(ALLOW="10.1.2.3", HTTP="yes"))
    allowed.send(Outgoing("POST", "http://10.1.2.3:9/"), limits=SHORT)
    return {
        **errors,
        "packets": after - before,
        "packets of one that is allowed": _packets() - after,
    }


def _packets() -> int:
    [line] = (one for one in Path("/proc/net/dev").read_text("ascii").splitlines() if "lo:" in one)
    return int(line.split()[10])  # sent


def _run(*words: str) -> None:
    subprocess.run(words, check=True, timeout=10)


if __name__ == "__main__":
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo")
    _run("ip", "-6", "route", "add", "local", "::/0", "dev", "lo")
    print(json.dumps({"rebinding": rebinding, "refused": refused}[sys.argv[1]]()))
