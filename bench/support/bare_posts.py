"""The rival of webhooks: processes that do nothing but POST, with the same client, to one receiver.

    with https_receiver() as receiver:
        posts = bare_posts(receiver, processes=8, seconds=5)

Every call is one that a delivery makes: the URL judged, the name resolved, a connection with TLS, a
signed body. What is missing is everything else: events, leases, rows, and what an answer means.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from bench.support.spent import cpu
from shared.config.env import Environment
from shared.config.outbound import read_outbound
from shared.webhooks.body import Message, encode, request_headers
from shared.webhooks.policy import Policy
from shared.webhooks.secret import Secret, new_secret
from shared.webhooks.signing import signature
from workers.sideeffects.http.client import GuardedClient
from workers.sideeffects.http.exchange import Outgoing

DATA = '{"note": "' + "n" * 400 + '"}'


@dataclass(frozen=True, slots=True)
class HttpsReceiver:
    """Where it is.

    Attributes:
        url: to call.
        environment: settings with which it may be called, and is believed.
        pid: of its process.
    """

    url: str
    environment: dict[str, str]
    pid: int


@dataclass(frozen=True, slots=True)
class Posts:
    """What loops did.

    Attributes:
        rate: calls a second of all together.
        spent: CPU milliseconds of a call, by who spent them.
    """

    rate: float
    spent: dict[str, float]


@contextmanager
def https_receiver() -> Iterator[HttpsReceiver]:
    """A receiver over TLS on this machine, until the block ends."""
    authority = trustme.CA()
    with tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        files = {name: str(Path(folder) / name) for name in ("ca", "certificate", "key")}
        issued = authority.issue_cert("127.0.0.1")
        authority.cert_pem.write_to_path(files["ca"])
        issued.cert_chain_pems[0].write_to_path(files["certificate"])
        issued.private_key_pem.write_to_path(files["key"])
        command = [sys.executable, "-m", "bench.support.https_receiver"]
        process = subprocess.Popen(
            [*command, files["certificate"], files["key"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        allowed = {"WEIRKEEPER_OUTBOUND_ALLOW": "127.0.0.1", "WEIRKEEPER_OUTBOUND_CA": files["ca"]}
        try:
            port = int(process.stdout.readline())
            yield HttpsReceiver(f"https://127.0.0.1:{port}/hook", allowed, process.pid)
        finally:
            process.communicate("")


def bare_posts(receiver: HttpsReceiver, processes: int, seconds: float) -> Posts:
    """Have so many processes call for so many seconds."""
    arguments = [receiver.url, receiver.environment["WEIRKEEPER_OUTBOUND_CA"], str(seconds)]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.support.bare_posts", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()  # it is ready
    before = cpu(receiver.pid)
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [tuple(map(float, process.communicate()[0].split())) for process in running]
    calls = sum(number for number, _, _ in told)
    spent = {"loops": sum(used for _, _, used in told), "receiver": cpu(receiver.pid) - before}
    return Posts(
        sum(number / took for number, took, _ in told),
        {name: used * 1000 / calls for name, used in spent.items()},
    )


def _loop(url: str, ca_file: str, seconds: float) -> tuple[int, float, float]:
    """Calls of this process, the seconds that they took, and the CPU seconds of them."""
    allowed = {"WEIRKEEPER_OUTBOUND_ALLOW": "127.0.0.1"}
    client = GuardedClient(Policy(read_outbound(Environment(allowed))), ca_file=ca_file)
    secret = new_secret()
    client.send(_outgoing(url, 0, secret))  # what is loaded once is loaded
    print("ready", flush=True)
    sys.stdin.readline()
    begun, calls, used = time.monotonic(), 0, time.process_time()
    while (spent := time.monotonic() - begun) < seconds:
        found = client.send(_outgoing(url, calls, secret))
        assert found.status == 204, found
        calls += 1
    return calls, spent, time.process_time() - used


def _outgoing(url: str, number: int, secret: Secret) -> Outgoing:
    message = Message(f"e{number}", "bench.done", "", "2026-01-31T12:00:00Z", DATA)
    body, stamp = encode(message), int(time.time())
    signed = signature([secret], message.id, stamp, body)
    headers = request_headers(message.id, stamp, signed, form="standard", version="1", custom={})
    return Outgoing("POST", url, headers, body)


if __name__ == "__main__":
    print(*_loop(sys.argv[1], sys.argv[2], float(sys.argv[3])))
