"""Signatures: the published vectors, two other receivers, and what verification says is wrong."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time

import pytest
import standardwebhooks
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InvalidArguments
from shared.webhooks.secret import Secret, new_secret, parse_secret
from shared.webhooks.signing import matches, signature, signed_bytes
from shared.webhooks.verification import PROBLEMS, verify
from tests.gates.source import ROOT

VECTORS = json.loads((ROOT / "docs/webhook_vectors.json").read_text("utf-8"))["vectors"]
NOW = 1_700_000_000
BODY = '{"id":"e","data":{"café":1}}'.encode()


def headers(secrets: list[Secret], body: bytes = BODY, stamp: int = NOW, message: str = "e1"):
    return {
        "webhook-id": message,
        "webhook-timestamp": str(stamp),
        "webhook-signature": signature(secrets, message, stamp, body),
    }


def problem(secret: Secret, given: dict[str, str], body: bytes = BODY, now: float = NOW) -> str:
    found = verify(secret, given, body, now=now)
    assert found.ok == (not found.problem)
    assert found.problem in ("", *PROBLEMS)
    return found.problem


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_vectors(vector):
    secret = parse_secret(vector["secret"])
    body = vector["body"].encode()
    made = signature([secret], vector["id"], vector["timestamp"], body)
    assert made == vector["signature"]
    public = parse_secret(vector.get("public", vector["secret"]))
    assert parse_secret(secret.for_receiver()) == public
    sent = {
        "Webhook-Id": vector["id"],
        "Webhook-Timestamp": str(vector["timestamp"]),
        "Webhook-Signature": vector["signature"],
    }
    assert problem(public, sent, body, now=vector["timestamp"]) == ""


def test_vectors_are_all_there():
    assert len(VECTORS) == 6
    assert {v["signature"].partition(",")[0] for v in VECTORS} == {"v1", "v1a"}


def test_a_receiver_of_the_standard_library():
    """Twelve lines that a receiver can copy: no library at all."""
    secret = new_secret()
    sent = headers([new_secret(), secret, new_secret("v1a")])
    key = base64.b64decode(secret.reveal().removeprefix("whsec_"))
    signed = f"{sent['webhook-id']}.{sent['webhook-timestamp']}.".encode() + BODY
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    given = [one.split(",", 1) for one in sent["webhook-signature"].split(" ")]
    assert any(hmac.compare_digest(text, expected) for version, text in given if version == "v1")


def test_the_library_that_many_receivers_use():
    old, new = new_secret(), new_secret()
    sent = headers([new, old], stamp=int(time.time()))
    for secret in (old, new):
        receiver = standardwebhooks.Webhook(secret.reveal())
        assert receiver.verify(BODY.decode(), sent) == json.loads(BODY)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(new_secret().reveal()).verify(BODY.decode(), sent)


def test_rotation_carries_a_signature_for_each_newest_first():
    secrets = [new_secret(), new_secret("v1a"), new_secret()]
    given = headers(secrets)["webhook-signature"].split(" ")
    assert [one.partition(",")[0] for one in given] == ["v1", "v1a", "v1"]
    message = signed_bytes("e1", NOW, BODY)
    assert all(matches(s, message, one) for s, one in zip(secrets, given, strict=True))
    assert not matches(secrets[0], message, given[2])
    for number in (0, 6):
        with pytest.raises(InvalidArguments):
            headers([new_secret() for _ in range(number)])


def test_v1a_is_verified_with_the_public_key_alone():
    secret = new_secret("v1a")
    public = parse_secret(secret.for_receiver())
    assert public.reveal().startswith("whpk_")
    assert problem(public, headers([secret])) == ""
    assert problem(parse_secret(new_secret("v1a").for_receiver()), headers([secret]))
    with pytest.raises(InvalidArguments):
        headers([public])


@pytest.mark.parametrize("message", ["a.1", "", "a b", "ä", "a\n", "x" * 257])
def test_ids_that_make_a_signature_ambiguous_are_refused(message):
    with pytest.raises(InvalidArguments):
        signature([new_secret()], message, NOW, b"")
    assert signed_bytes("a", 1, b"2.x") == b"a.1.2.x"


def test_secrets_are_random_and_never_shown():
    made = [new_secret(scheme) for scheme in ("v1", "v1", "v1a", "v1a")]
    assert len({secret.key for secret in made}) == 4
    assert [len(secret.key) for secret in made] == [32, 32, 64, 64]
    for secret in made:
        hidden = secret.reveal().partition("_")[2]
        for shown in (str(secret), repr(secret), f"{secret}", repr([secret])):
            assert hidden not in shown
            assert str(secret.key) not in shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_",
        "whsec_c2hvcnQ=",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsk_" + base64.b64encode(bytes(64)).decode(),
        "whpk_" + base64.b64encode(bytes(31)).decode(),
        "whsec_ä",
    ],
)
def test_what_is_no_secret_is_refused_and_not_repeated(text):
    with pytest.raises(InvalidArguments) as caught:
        parse_secret(text)
    assert text.partition("_")[2][:8] not in str(caught.value) or not text.partition("_")[2]
    assert caught.value.__cause__ is None


@given(st.binary(max_size=200), st.integers(0, 2**40), st.sampled_from(["v1", "v1a"]))
def test_what_is_signed_verifies_and_nothing_else_does(body, stamp, scheme):
    secret = new_secret(scheme)
    given = headers([secret], body, stamp)
    assert problem(secret, given, body, stamp) == ""
    assert problem(secret, given, body + b"x", stamp) == "wrong_signature"
    assert problem(secret, {**given, "webhook-id": "e2"}, body, stamp) == "wrong_signature"
    later = {**given, "webhook-timestamp": str(stamp + 1)}
    assert problem(secret, later, body, stamp) == "wrong_signature"


SECRET = new_secret()


def said(given: dict[str, str], body: bytes = BODY, now: float = NOW) -> tuple[str, str]:
    found = verify(SECRET, given, body, now=now)
    return found.problem, found.told


@pytest.mark.parametrize(
    ("change", "now", "expected"),
    [
        ({"webhook-id": ""}, NOW, ("missing_header", "no webhook-id")),
        ({"webhook-id": "a.b"}, NOW, ("bad_id", "without a dot")),
        ({"webhook-timestamp": "soon"}, NOW, ("bad_timestamp", "no number")),
        ({"webhook-timestamp": "-1"}, NOW, ("bad_timestamp", "no number")),
        ({}, NOW + 301, ("too_old", "301 s older")),
        ({}, NOW + 300, ("", "verifies")),
        ({}, NOW - 300, ("", "verifies")),
        ({}, NOW - 301, ("too_new", "301 s newer")),
        ({"webhook-signature": "v1a,eHg="}, NOW, ("no_signature_of_this_kind", "v1a")),
        ({"webhook-signature": "nonsense"}, NOW, ("no_signature_of_this_kind", "nonsense")),
        ({"webhook-signature": "v1,eHg="}, NOW, ("wrong_signature", "another endpoint's")),
        ({"webhook-signature": "v1,ä v1,é"}, NOW, ("wrong_signature", "none of the 2")),
    ],
)
def test_it_says_what_is_wrong(change, now, expected):
    problem_, told = said({**headers([SECRET]), **change}, now=now)
    assert problem_ == expected[0]
    assert expected[1] in told


def test_milliseconds_are_named():
    given = headers([SECRET], stamp=NOW * 1000)
    assert said(given) == (
        "bad_timestamp",
        "webhook-timestamp is in milliseconds; expected seconds",
    )


@pytest.mark.parametrize(
    ("signed", "came", "told"),
    [
        (BODY, BODY + b"\n", "without its last line break"),
        (BODY + b"\n", BODY, "with a line break at its end"),
        (b'{"a":\n1}', b'{"a":\r\n1}', "with \\n for \\r\\n"),
        (b'{"a":1,"b":"\xc3\xa9"}', b'{"a": 1, "b": "\\u00e9"}', "another JSON writer"),
        (b'{"a": 1}', b'{"a":1}', "another JSON writer"),
    ],
)
def test_a_body_that_was_changed_on_the_way_is_recognised(signed, came, told):
    found = said(headers([SECRET], signed), came)
    assert found[0] == "wrong_signature"
    assert told in found[1]


def test_a_secret_that_was_not_decoded_is_recognised():
    for text in (SECRET.reveal(), SECRET.reveal().removeprefix("whsec_")):
        wrong = Secret("whsec_", text.encode())
        found = said(headers([wrong]))
        assert found[0] == "wrong_signature"
        assert "must be decoded" in found[1]


def test_hexadecimal_is_recognised():
    made = hmac.digest(SECRET.key, signed_bytes("e1", NOW, BODY), hashlib.sha256).hex()
    found = said({**headers([SECRET]), "webhook-signature": f"v1,{made}"})
    assert found == ("wrong_signature", "the signature is hexadecimal; expected base64")


def test_strange_bodies_do_not_trip_it():
    given = {**headers([SECRET]), "webhook-signature": "v1,eHg="}
    for body in (b"", b"\xff\xfe", b"[" * 100_000, b'"\\ud800"', b"NaN", b"1" * 5000):
        assert said(given, body)[0] == "wrong_signature"
