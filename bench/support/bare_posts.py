"""The rival of webhooks: processes that do nothing but POST, with the same client, to one receiver.

    with https_receiver() as receiver:
        figure = bare_posts(receiver, processes=8, seconds=5)

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
    """

    url: str
    environment: dict[str, str]


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
            yield HttpsReceiver(f"https://127.0.0.1:{port}/hook", allowed)
        finally:
            process.communicate("")


def bare_posts(receiver: HttpsReceiver, processes: int, seconds: float) -> float:
    """Calls a second of so many processes together."""
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
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in running)


def _loop(url: str, ca_file: str, seconds: float) -> float:
    """Calls a second of this process."""
    allowed = {"WEIRKEEPER_OUTBOUND_ALLOW": "127.0.0.1"}
    client = GuardedClient(Policy(read_outbound(Environment(allowed))), ca_file=ca_file)
    secret = new_secret()
    client.send(_outgoing(url, 0, secret))  # what is loaded once is loaded
    print("ready", flush=True)
    sys.stdin.readline()
    begun, calls = time.monotonic(), 0
    while (spent := time.monotonic() - begun) < seconds:
        found = client.send(_outgoing(url, calls, secret))
        assert found.status == 204, found
        calls += 1
    return calls / spent


def _outgoing(url: str, number: int, secret: Secret) -> Outgoing:
    message = Message(f"e{number}", "bench.done", "", "2026-01-31T12:00:00Z", DATA)
    body, stamp = encode(message), int(time.time())
    signed = signature([secret], message.id, stamp, body)
    headers = request_headers(message.id, stamp, signed, form="standard", version="1", custom={})
    return Outgoing("POST", url, headers, body)


if __name__ == "__main__":
    print(_loop(sys.argv[1], sys.argv[2], float(sys.argv[3])))
