"""Waiters are bounded and woken by name; payloads are judged, never trusted."""

from __future__ import annotations

import threading

import pytest

from shared.errors import WaitersFull
from shared.notices.channels import FANOUT, FINAL, ids_in, is_event_id, is_job_id
from shared.notices.waiters import LIMIT, Waiters

EVENT = "0b0e8f6c-2f6e-4a55-9a51-8d7a5f1f9d10"


def nothing() -> None:
    pass


@pytest.mark.parametrize(
    ("payload", "ids"),
    [
        ("1", ["1"]),
        ("1,22,333", ["1", "22", "333"]),
        ("", []),
        (",,", []),
        ("1, 2", ["1"]),
        ("-1,+1,1.0,0x1,1e3,٣", []),
        ("007,0", []),
        ("9223372036854775807", ["9223372036854775807"]),
        ("9223372036854775808", []),
        ("9" * 5000, []),
        ("1;drop table job,2", ["2"]),
        ("1\n", []),
        (EVENT, []),
    ],
)
def test_job_ids_are_decimal_numbers_of_64_bits(payload, ids):
    assert ids_in(FINAL, payload) == ids


def test_event_ids_are_uuids_in_their_one_form():
    assert ids_in(FANOUT, f"{EVENT},{EVENT.upper()},{EVENT}x,17") == [EVENT]
    assert is_event_id(EVENT)
    assert not is_event_id(EVENT.replace("-", ""))


def test_other_channels_name_nothing():
    assert ids_in("weirkeeper_relay", "1") == []


def test_what_can_be_a_job_id():
    assert [t for t in ("1", "01", "", "1 ", "²", "9" * 20) if is_job_id(t)] == ["1"]


def test_only_those_named_are_woken_in_their_order():
    waiters, woken = Waiters(), []
    with (
        waiters.register(FINAL, "1", lambda: woken.append("a")),
        waiters.register(FINAL, "2", lambda: woken.append("b")),
        waiters.register(FINAL, "1", lambda: woken.append("c")),
    ):
        waiters.heard(FINAL, "1,3")
        assert woken == ["a", "c"]
        waiters.heard(FANOUT, "2")
        waiters.heard("weirkeeper_relay", "")
        assert woken == ["a", "c"]
        waiters.missed()
        assert woken == ["a", "c", "a", "b", "c"]
    waiters.missed()
    assert len(woken) == 5


def test_the_65th_is_refused_at_once_and_channels_are_apart():
    waiters = Waiters()
    places = [waiters.register(FINAL, "1", nothing) for _ in range(LIMIT)]
    for place in places:
        place.__enter__()
    with pytest.raises(WaitersFull, match="expected fewer than 64"):
        waiters.register(FINAL, "1", nothing).__enter__()
    with waiters.register(FANOUT, EVENT, nothing):
        assert (waiters.count(FINAL), waiters.count(FANOUT)) == (64, 1)
    places[0].__exit__(None, None, None)
    with waiters.register(FINAL, "2", nothing):
        assert waiters.count(FINAL) == 64
    for place in places[1:]:
        place.__exit__(None, None, None)
    assert not waiters.any()


def test_a_place_is_given_back_whatever_ends_the_wait():
    waiters = Waiters(limit=1)
    for _ in range(1000):
        with pytest.raises(ZeroDivisionError), waiters.register(FINAL, "1", nothing):
            1 / 0  # noqa: B018
    assert waiters.count(FINAL) == 0


def test_places_are_neither_lost_nor_doubled_by_many_threads():
    waiters, refused, over = Waiters(limit=5), [], []

    def come_and_go() -> None:
        for _ in range(500):
            try:
                with waiters.register(FINAL, "1", nothing):
                    over.append(waiters.count(FINAL) > 5)
            except WaitersFull:
                refused.append(1)

    threads = [threading.Thread(target=come_and_go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert waiters.count(FINAL) == 0
    assert not any(over)
