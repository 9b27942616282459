"""Check a request as a receiver does, and say what is wrong with one that does not verify.

Used by `weirkeeper webhooks verify` and `weirkeeper webhooks receiver`. A receiver needs only yes
or no; whoever is stuck needs to know which of the usual mistakes it is, so the body and the key are
tried in the forms that mistakes produce.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared.errors import InvalidArguments
from shared.webhooks.secret import Secret
from shared.webhooks.signing import matches, signed_bytes

TOLERANCE = 300  # seconds that a timestamp may be off, as the specification recommends
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
PROBLEMS = (
    "missing_header",
    "bad_id",
    "bad_timestamp",
    "too_old",
    "too_new",
    "no_signature_of_this_kind",
    "wrong_signature",
)


@dataclass(frozen=True, slots=True)
class Verification:
    """What came out. `problem` is "" (it verifies) or one of `PROBLEMS`; `told` is for people."""

    problem: str
    told: str

    @property
    def ok(self) -> bool:
        """Whether the request is genuine and fresh."""
        return not self.problem


def verify(
    secret: Secret,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    tolerance: float = TOLERANCE,
) -> Verification:
    """Check one request.

    Args:
        secret: whsec_ or whpk_ (whsk_ works, too).
        headers: of the request, in any case.
        body: the bytes as they came, before anybody parsed them.
        now: unix seconds.
        tolerance: seconds that the timestamp may be off.
    """
    known = {name.lower(): value.strip() for name, value in headers.items()}
    missing = [name for name in (ID, TIMESTAMP, SIGNATURE) if not known.get(name)]
    if missing:
        return Verification("missing_header", f"the request has no {' and no '.join(missing)}")
    if not re.fullmatch(r"[0-9]{1,15}", known[TIMESTAMP]):
        return Verification("bad_timestamp", f"{TIMESTAMP} is {known[TIMESTAMP][:40]!r}, no number")
    stamp = int(known[TIMESTAMP])
    try:
        message = signed_bytes(known[ID], stamp, body)
    except InvalidArguments as error:
        return Verification("bad_id", f"{ID}: {error}")
    wrong = _signature_problem(secret, message, known, body)
    return wrong or _time_problem(stamp, now, tolerance) or Verification("", "it verifies")


def _time_problem(stamp: int, now: float, tolerance: float) -> Verification | None:
    late = now - stamp
    if abs(late) <= tolerance:
        return None
    if stamp > 100_000_000_000:
        return Verification("bad_timestamp", f"{TIMESTAMP} is in milliseconds; expected seconds")
    told = f"{abs(late):.0f} s {{}} than the clock here; allowed are {tolerance:g} s"
    if late > 0:
        return Verification("too_old", told.format("older") + "; a replay, or a clock is wrong")
    return Verification("too_new", told.format("newer") + "; a clock is wrong")


def _signature_problem(
    secret: Secret, message: bytes, known: Mapping[str, str], body: bytes
) -> Verification | None:
    given = known[SIGNATURE].split()
    if any(matches(secret, message, one) for one in given):
        return None
    kinds = sorted({one.partition(",")[0] for one in given})
    if secret.scheme not in kinds:
        return Verification(
            "no_signature_of_this_kind",
            f"{SIGNATURE} has {', '.join(kinds)}; this secret is for {secret.scheme}",
        )
    for told, other_secret, other_body in _mistakes(secret, body):
        head = message[: len(message) - len(body)]
        if any(_fits(other_secret, head + other_body, one) for one in given):
            return Verification("wrong_signature", told)
    return Verification(
        "wrong_signature",
        f"none of the {len(given)} signatures is of this secret over this id, timestamp and body: "
        "another endpoint's secret, or the body was changed on the way",
    )


def _mistakes(secret: Secret, body: bytes) -> Iterator[tuple[str, Secret, bytes]]:
    """(what it is, secret, body) of the mistakes that people make."""
    yield "the signature is hexadecimal; expected base64", secret, body
    changed = "the signature is right for the body {}: use the bytes as they came"
    yield changed.format("without its last line break"), secret, body.removesuffix(b"\n")
    yield changed.format("without its last line break"), secret, body.removesuffix(b"\r\n")
    yield changed.format("with a line break at its end"), secret, body + b"\n"
    yield changed.format("with \\n for \\r\\n"), secret, body.replace(b"\r\n", b"\n")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if value is not None:
        for ascii_only in (False, True):
            for separators in ((",", ":"), (", ", ": ")):
                text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
                spelt = text.encode("utf-8", "replace")
                yield changed.format("as another JSON writer spells it"), secret, spelt
    if secret.scheme == "v1":
        encoded = base64.b64encode(secret.key)
        undecoded = "the sender signed with the text of the secret: its base64 must be decoded"
        yield undecoded, Secret(secret.prefix, encoded), body
        yield undecoded, Secret(secret.prefix, secret.prefix.encode() + encoded), body


def _fits(secret: Secret, message: bytes, given: str) -> bool:
    if matches(secret, message, given):
        return True
    hexed = hmac.digest(secret.key, message, hashlib.sha256).hex()
    return secret.scheme == "v1" and hmac.compare_digest(
        hexed.encode(), given.partition(",")[2].encode()
    )
