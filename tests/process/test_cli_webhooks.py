"""`weirkeeper webhooks check-url`, `verify` and `receiver`, as real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from shared.webhooks.body import Message, encode, request_headers
from shared.webhooks.secret import Secret, new_secret
from shared.webhooks.signing import signature
from tests.gates.source import ROOT
from tests.support import receivers as r
from tests.support.calls import post
from workers.sideeffects.http.client import GuardedClient
from workers.sideeffects.http.exchange import Outgoing

CLI = [sys.executable, "-P", "-m", "panel.cli.main", "webhooks"]
BODY = encode(Message("e1", "order.paid", "order:7", "2026-01-31T12:00:00Z", '{"n": 1}'))


def run(*arguments: str, given: bytes = b"", **environ: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*CLI, *arguments],
        cwd=ROOT,
        env={**os.environ, "WEIRKEEPER_HOME": "/nowhere", **environ},
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


@pytest.mark.parametrize(
    ("url", "environ", "expected"),
    [
        ("https://93.184.216.34/", {}, "allowed"),
        ("http://93.184.216.34/", {}, "scheme"),
        ("https://127.1/", {}, "numeric_host"),
        ("https://10.0.0.1/", {}, "ip"),
        ("https://10.0.0.1/", {"WEIRKEEPER_OUTBOUND_ALLOW": "10.0.0.0/8"}, "allowed"),
        ("https://93.184.216.34/", {"WEIRKEEPER_OUTBOUND_DENY": "93.184.216.34"}, "denied"),
        ("https://localhost/", {}, "single_label"),
        ("https://localhost/", {"WEIRKEEPER_OUTBOUND_ALLOW": "localhost"}, "allowed"),
        ("https://[fe80::1%25eth0]/", {}, "ip"),
    ],
)
def test_check_url_names_the_rule(url, environ, expected):
    done = run("check-url", url, **environ)
    assert done.returncode == (expected != "allowed"), done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("allowed: " if expected == "allowed" else "refused: ")
    if expected != "allowed":
        assert rest[0].startswith(f"rule: {expected} (")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("update", "1"), "update: expected something to change; got nothing"),
        (("update", "1", "--header", "x-key"), "--header: expected NAME=VALUE; got 'x-key'"),
        (("update", "1", "--header", "x=1", "--header", "x=2"), "--header: x stands there twice"),
        (
            ("update", "1", "--rate", "5", "--without", "rate"),
            "update: rate is given and taken away",
        ),
    ],
)
def test_what_is_forgotten_is_named(arguments, told):
    done = run(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(f"weirkeeper webhooks: {told}")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("receiver", "--port", "65536"), "--port: expected 0 to 65535; got 65536"),
        (("receiver", "--port", "-1"), "--port: expected 0 to 65535; got -1"),
        (("receiver", "--answer", "100"), "--answer: expected 200 to 599; got 100"),
        (("receiver", "--count", "0"), "--count: expected 1 to 1000000000; got 0"),
        (("verify", "-", "--secret-file", "x", "--tolerance", "-1"), "--tolerance: expected 0 to"),
        (("start-replay", "1", "--wait", "-1"), "--wait: expected 0 to 1000000; got -1"),
        (
            ("update", "1", "--schedule", "１"),
            "--schedule: expected seconds such as 5,300; got '１'",
        ),
        (("update", "1", "--without", "url"), "--without: expected one of contact, headers, rate"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(arguments, told):
    done = run(*arguments)
    assert done.returncode == 2
    assert f"error: argument {told}" in done.stderr


def test_check_url_of_a_name_that_is_not_there_says_that_no_rule_forbids_it():
    done = run("check-url", "https://nowhere-at-all.example.com/")
    assert done.returncode == 1
    assert "rule:" not in done.stdout
    assert "why: no rule forbids it, but the name could not be resolved" in done.stdout


def test_check_url_for_programs():
    told = json.loads(run("check-url", "https://10.0.0.1/", "--json").stdout)
    assert (told["allowed"], told["rule"], told["addresses"]) == (False, "ip", [])


def test_check_url_without_the_dns():
    assert run("check-url", "https://nowhere.example.org/", "--no-resolve").returncode == 0
    done = run("check-url", "https://x.local/", "--no-resolve")
    assert "rule: special_name" in done.stdout


def captured(secret: Secret, stamp: int, end: str = "\r\n") -> bytes:
    signed = signature([secret], "e1", stamp, BODY)
    headers = request_headers("e1", stamp, signed, form="standard", version="1", custom={})
    lines = ["POST /hook HTTP/1.1", "Host: h", *(f"{name}: {value}" for name, value in headers)]
    return end.join([*lines, "", ""]).encode() + BODY


@pytest.fixture
def secret_file(tmp_path):
    secret = new_secret()
    path = tmp_path / "secret"
    path.write_text(secret.reveal() + "\n")
    return secret, str(path)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_verify_a_captured_request(secret_file, tmp_path, end):
    secret, path = secret_file
    now = int(time.time())
    good = captured(secret, now, end)
    done = run("verify", "-", "--secret-file", path, given=good)
    assert (done.returncode, done.stdout) == (0, "it verifies\n"), done.stderr
    apart = tmp_path / "body"
    apart.write_bytes(BODY)
    done = run("verify", "-", "--body", str(apart), "--secret-file", path, given=good[: -len(BODY)])
    assert done.returncode == 0, done.stdout + done.stderr


def test_verify_says_what_is_wrong(secret_file):
    secret, path = secret_file
    old = captured(secret, 1_700_000_000)
    done = run("verify", "-", "--secret-file", path, given=old)
    assert done.returncode == 1
    assert "too_old" in done.stdout
    assert "--at" in done.stdout
    at = ["--at", "1700000010"]
    assert run("verify", "-", "--secret-file", path, *at, given=old).returncode == 0
    done = run("verify", "-", "--secret-file", path, *at, "--json", given=old + b"\n")
    told = json.loads(done.stdout)
    assert told["problem"] == "wrong_signature"
    assert "last line break" in told["told"]
    done = run("verify", "-", "--secret-file", path, given=b"nothing")
    assert done.returncode == 1
    assert "got no header" in done.stderr


@pytest.mark.parametrize("held", ["", "whsec_short", "canary-of-a-secret"])
def test_verify_refuses_what_is_no_secret(tmp_path, held):
    path = tmp_path / "secret"
    path.write_text(held)
    done = run("verify", "-", "--secret-file", str(path), given=b"webhook-id: x\n\n")
    assert done.returncode == 1
    assert done.stderr.startswith("weirkeeper webhooks: secret: expected")
    assert "canary" not in done.stderr
    done = run("verify", "-", "--secret-file", str(path / "nowhere"))
    assert "expected a file to read" in done.stderr


@contextmanager
def receiving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(the process, its URL)."""
    process = subprocess.Popen(
        [*CLI, "receiver", "--host", "127.0.0.1", "--port", "0", *arguments],
        cwd=ROOT,
        env={**os.environ, "WEIRKEEPER_HOME": "/nowhere"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("receives on http://127.0.0.1:"), process.stderr
        yield process, first.split()[-1]
    finally:
        process.kill()
        process.communicate()


def deliver(url: str, secret: Secret, body: bytes = BODY):
    stamp = int(time.time())
    signed = signature([secret], "e1", stamp, BODY)
    headers = request_headers("e1", stamp, signed, form="standard", version="1", custom={})
    client = GuardedClient(r.local_policy(), resolver=r.Names())
    return client.send(Outgoing("POST", url, headers, body))


def test_the_receiver_verifies_and_prints(secret_file):
    secret, path = secret_file
    with receiving("--secret-file", path, "--count", "3") as (process, url):
        assert deliver(url, secret).status == 204
        assert deliver(url + "any/path?x=1", secret).status == 204
        assert deliver(url, new_secret()).status == 204
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 1, "one did not verify"
    lines = out.splitlines()
    assert lines[0] == "e1: verified: " + BODY.decode()
    assert lines[1].startswith("e1, time 2: verified: ")
    assert lines[2].startswith("e1, time 3: wrong_signature (")
    assert secret.reveal() not in out


def test_the_receiver_answers_as_it_is_told(secret_file):
    secret, path = secret_file
    asked = ("--answer", "503", "--retry-after", "7", "--secret-file", path, "--json")
    with receiving(*asked) as (process, url):
        found = deliver(url, secret)
        assert (found.status, found.retry_after) == (503, "7")
        assert deliver(url, secret, BODY + b" " * 2_000_000).status in (413, None)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 0
    told = json.loads(out.splitlines()[0])
    assert (told["id"], told["problem"], told["body"]) == ("e1", "", BODY.decode())


def test_the_receiver_without_a_secret_verifies_nothing():
    with receiving("--count", "1") as (process, url):
        assert post(GuardedClient(r.local_policy(), resolver=r.Names()), url).status == 204
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 0
    assert "unchecked (no --secret-file was given)" in out


def test_the_receiver_binds_this_machine_alone():
    done = run("receiver", "--host", "192.0.2.1")
    assert done.returncode == 78
    assert "loopback" in done.stderr
