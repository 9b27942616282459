"""Sealing, bodies, headers, schedules, Retry-After, and the whole table of answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.config.settings import Settings
from shared.errors import ConfigurationError, InvalidArguments
from shared.webhooks.answers import CODES, STRANGE, TABLE, Action, Answer, judge
from shared.webhooks.body import FORMATS, Message, check_custom, compact, encode, request_headers
from shared.webhooks.codes import BLOCKED, ERRORS, PHASES
from shared.webhooks.schedule import DEFAULT, LONGEST_PAUSE, own_schedule, retry_after
from shared.webhooks.sealing import Sealer

OLD, NEW = "o" * 44, "n" * 44
DAY = 86_400.0


# Sealing


def test_what_is_sealed_opens_for_its_owner_alone():
    sealer = Sealer([NEW])
    stored = sealer.seal("whsec_x", "alice")
    assert sealer.unseal(stored, "alice") == "whsec_x"
    assert b"whsec" not in stored
    assert sealer.seal("whsec_x", "alice") != stored, "a nonce was used twice"
    with pytest.raises(ConfigurationError, match="copied from another owner"):
        sealer.unseal(stored, "bob")


@pytest.mark.parametrize("at", [17, -1])
def test_a_damaged_one_does_not_open(at):
    stored = bytearray(Sealer([NEW]).seal("whsec_x", "alice"))
    stored[at] ^= 1
    with pytest.raises(ConfigurationError, match="was changed"):
        Sealer([NEW]).unseal(bytes(stored), "alice")


@pytest.mark.parametrize("stored", [b"", b"\x01", b"\x02" * 60, b"\x01" * 60])
def test_what_was_never_sealed_does_not_open(stored):
    with pytest.raises(ConfigurationError):
        Sealer([NEW]).unseal(stored, "alice")


def test_the_key_is_changed_without_losing_anything():
    stored = Sealer([OLD]).seal("whsec_x", "alice")
    both = Sealer([NEW, OLD])
    assert both.unseal(stored, "alice") == "whsec_x"
    assert [stored.startswith(mark) for mark in both.older] == [True]
    again = both.seal(both.unseal(stored, "alice"), "alice")
    assert [again.startswith(mark) for mark in both.older] == [False]
    assert Sealer([NEW]).older == ()
    assert Sealer([NEW]).unseal(again, "alice") == "whsec_x"
    with pytest.raises(ConfigurationError) as caught:
        Sealer([NEW]).unseal(stored, "alice")
    assert "WEIRKEEPER_SECRET=new,old" in str(caught.value)
    assert NEW not in str(caught.value)


def test_without_a_secret_nothing_is_stored():
    none = Sealer([])
    for call in (lambda: none.seal("x", "a"), lambda: none.unseal(b"\x01" * 60, "a")):
        with pytest.raises(ConfigurationError, match="openssl rand -base64 32"):
            call()
    assert none.older == ()


def test_the_setting():
    found = Settings.load({"WEIRKEEPER_SECRET": f"{NEW}, {OLD}", "WEIRKEEPER_HOME": "/nowhere"})
    assert found.sealing_keys == (NEW, OLD)
    assert NEW not in repr(found)
    assert NEW not in json.dumps(found.describe(), default=str)
    with pytest.raises(ConfigurationError) as caught:
        Settings.load({"WEIRKEEPER_SECRET": "too-short", "WEIRKEEPER_HOME": "/nowhere"})
    assert "too-short" not in str(caught.value)


# Bodies and headers

MESSAGE = Message("e1", "order.paid", "order:7", "2026-01-31T12:00:00Z", '{"b": 1, "a": "é \\n"}')


def test_the_standard_body():
    assert encode(MESSAGE).decode() == (
        '{"id":"e1","type":"order.paid","subject":"order:7",'
        '"occurred_at":"2026-01-31T12:00:00Z","data":{"b":1,"a":"é \\n"}}'
    )


def test_the_cloudevents_body():
    found = encode(MESSAGE, "cloudevents", "https://shop.example.org/")
    assert list(json.loads(found)) == [
        "specversion",
        "id",
        "source",
        "type",
        "subject",
        "time",
        "datacontenttype",
        "data",
    ]
    assert json.loads(found)["source"] == "https://shop.example.org/"
    without = Message("e1", "t", "", "2026-01-31T12:00:00Z", "{}")
    assert "subject" not in json.loads(encode(without, "cloudevents"))
    assert json.loads(encode(without))["subject"] is None


def test_long_numbers_keep_their_digits():
    text = '{"n": 12345678901234567890.12345678901234567890, "e": 1e400, "t": "a ,  b : \\" c"}'
    assert compact(text) == text.replace('": ', '":').replace(", ", ",", 2)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from([None, 1, "\t"]),
)
def test_compact_is_what_a_compact_writer_writes(value, indent):
    loose = json.dumps(value, indent=indent, ensure_ascii=False)
    assert compact(loose) == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_compact_is_fast_on_a_text_that_is_no_json():
    assert compact('"' + "a" * 200_000).startswith('"a')


@pytest.mark.parametrize("form", FORMATS)
def test_headers_of_an_attempt(form):
    found = dict(
        request_headers("e1", 7, "v1,x", form=form, version="1.2", custom={"X-Key": "a b"})
    )
    assert found["webhook-id"] == "e1"
    assert found["webhook-timestamp"] == "7"
    assert found["webhook-signature"] == "v1,x"
    assert found["user-agent"] == "weirkeeper/1.2"
    assert found["accept-encoding"] == "identity"
    assert found["content-type"].startswith("application/")
    assert found["X-Key"] == "a b"


@pytest.mark.parametrize(
    "name",
    [
        "Webhook-Id",
        "webhook-anything",
        "HOST",
        "Content-Type",
        "content-length",
        "Transfer-Encoding",
        "connection",
        "TE",
        "trailer",
        "Upgrade",
        "expect",
        "Proxy-Authorization",
        "User-Agent",
        "accept-encoding",
        "Cookie",
        "ce-id",
    ],
)
def test_system_names_are_refused_in_any_case(name):
    with pytest.raises(InvalidArguments, match="written by Weirkeeper"):
        check_custom({name: "x"})


@pytest.mark.parametrize(
    "custom",
    [
        {"": "x"},
        {"a b": "x"},
        {"a:": "x"},
        {"ä": "x"},
        {"a\n": "x"},
        {"X-A": ""},
        {"X-A": " x"},
        {"X-A": "x\r\nHost: y"},
        {"X-A": "x\x00"},
        {"X-A": "ä"},
        {"X-A": "x" * 4097},
        {"X-A": "1", "x-a": "2"},
        {f"X-{i}": "1" for i in range(33)},
    ],
)
def test_what_cannot_be_sent_is_refused(custom):
    with pytest.raises(InvalidArguments) as caught:
        check_custom(custom)
    assert all(len(value) < 4 or value not in str(caught.value) for value in custom.values())


# Schedules


def test_the_default_schedule_is_eighteen_attempts_in_five_days():
    assert DEFAULT.attempts == 18
    assert DEFAULT.steps[:6] == (5, 300, 1_800, 7_200, 18_000, 36_000)
    assert 5.2 * DAY < sum(DEFAULT.steps) < 5.4 * DAY
    assert DEFAULT.delay(1) == 5
    assert DEFAULT.delay(17) == 36_000
    assert DEFAULT.delay(18) is None


def test_an_endpoint_may_have_its_own():
    found = own_schedule([60, 600.5])
    assert (found.attempts, found.delay(2), found.delay(3)) == (3, 600.5, None)
    assert own_schedule([]).attempts == 1
    assert own_schedule([8 * 3600] * 30).attempts == 31
    created = datetime(2026, 1, 1, tzinfo=UTC)
    latest = created + timedelta(seconds=660.5 * 1.2)
    assert found.give_up_at(created) >= latest


@pytest.mark.parametrize(
    "steps",
    [[1] * 31, [0], [-1], [True], ["5"], [float("nan")], [float("inf")], [6 * DAY, 6 * DAY]],
)
def test_a_schedule_that_cannot_be_is_refused(steps):
    with pytest.raises(InvalidArguments):
        own_schedule(steps)


NOW = datetime(2026, 1, 31, 12, 0, 0, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        (" 120 ", 120),
        ("86400", DAY),
        ("86401", LONGEST_PAUSE),
        ("9" * 18, LONGEST_PAUSE),
        ("9" * 19, None),
        ("-1", None),
        ("+1", None),
        ("1.5", None),
        ("1e3", None),
        ("٣", None),
        ("", None),
        ("soon", None),
        ("Sat, 31 Jan 2026 12:01:00 GMT", 60),
        ("Sat, 31 Jan 2026 11:00:00 GMT", 0),
        ("Sat, 31 Jan 2026 12:01:60 GMT", 119),
        ("Thu, 31 Dec 2099 00:00:00 GMT", LONGEST_PAUSE),
        ("Sat, 31 Feb 2026 12:00:00 GMT", None),
        ("Sat, 31 Jan 2026 25:00:00 GMT", None),
        ("Sat, 31 Jan 2026 12:01:00 UTC", None),
        ("Saturday, 31-Jan-26 12:01:00 GMT", None),
        ("Sat Jan 31 12:01:00 2026", None),
        ("Sat, 31 Jan 0000 12:01:00 GMT", None),
        ("2026-01-31T12:01:00Z", None),
    ],
)
def test_retry_after(value, seconds):
    assert retry_after(value, NOW) == seconds


# Answers


FAILED = {"outcome": "failure"}
EXPECTED = {
    **{Answer(status): {"outcome": "success", "code": ""} for status in (200, 201, 202, 204, 299)},
    **{
        Answer(status): {**FAILED, "code": "redirect_not_followed", "loud": True}
        for status in (300, 301, 302, 303, 304, 307, 308)
    },
    Answer(410): {**FAILED, "code": "gone", "disables": "gone", "loud": True},
    Answer(429, retry_after=90.0): {"outcome": "wait", "code": "asked_to_wait", "pause": 90.0},
    Answer(503, retry_after=90.0): {"outcome": "wait", "code": "asked_to_wait", "pause": 90.0},
    Answer(503, retry_after=0.0): {"outcome": "wait", "code": "asked_to_wait", "pause": 5.0},
    **{
        Answer(status): {**FAILED, "code": "overwhelmed", "pause": 30.0}
        for status in (408, 425, 429)
    },
    **{
        Answer(status): {**FAILED, "code": "server_error", "pause": 30.0}
        for status in (500, 502, 503, 504, 599)
    },
    Answer(500, retry_after=90.0): {**FAILED, "code": "server_error", "pause": 30.0},
    Answer(413): {**FAILED, "code": "too_large", "tries": 3, "loud": True},
    **{
        Answer(status): {**FAILED, "code": "client_error"}
        for status in (400, 401, 403, 404, 405, 409, 418, 422, 451, 499)
    },
    Answer(404, retry_after=90.0): {**FAILED, "code": "client_error"},
    **{Answer(status): {**FAILED, "code": "strange_status"} for status in (101, 199, 600, 999)},
    Answer(None, BLOCKED): {**FAILED, "code": BLOCKED, "tries": 3, "loud": True},
    Answer(None, BLOCKED, by_url=True): {
        **FAILED,
        "code": BLOCKED,
        "tries": 3,
        "loud": True,
        "disables": "blocked",
    },
    **{
        Answer(None, code): {**FAILED, "code": code, "pause": 30.0}
        for code in ERRORS
        if code != BLOCKED
    },
}


@pytest.mark.parametrize("answer", EXPECTED, ids=str)
def test_the_table_of_answers(answer):
    assert judge(answer) == Action(**EXPECTED[answer])


def test_every_status_has_a_row_and_every_row_a_case():
    for status in range(100, 1000):
        action = judge(Answer(status))
        assert (action.outcome == "success") == (200 <= status < 300)
        assert action.code or action.outcome == "success"
    used = [next((n for n, (fits, _) in enumerate(TABLE) if fits(a)), None) for a in EXPECTED]
    assert set(range(len(TABLE))) <= set(used)
    assert {judge(a).code for a in EXPECTED} == {"", STRANGE.code, *CODES, *ERRORS}


def test_a_setting_discards_at_once():
    assert judge(Answer(404), discard_client_errors=True).tries == 1
    for other in (410, 413, 429, 500, 301):
        assert judge(Answer(other), discard_client_errors=True) == judge(Answer(other))


def test_error_codes_are_of_a_phase():
    assert {phase for phase, _ in ERRORS.values()} <= set(PHASES)
    assert not set(ERRORS) & CODES - {BLOCKED}
