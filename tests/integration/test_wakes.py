"""The sleep lock: silent writers, woken sleepers, and no trailing edge that is lost."""

from __future__ import annotations

import random
import select
import threading
from collections.abc import Iterator

import psycopg
import pytest

from shared.postgres.driver.connect import connect
from shared.postgres.queues.wakes import RELAY_LOCK, Wakes, relay_channel

ADD = "select weirkeeper.record_event('corpus.note.changed')"
SOON = 5.0


@pytest.fixture
def wakes(database_url: str) -> Iterator[Wakes]:
    opened = Wakes(database_url, "test", RELAY_LOCK, relay_channel())
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def writer(database_url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database_url) as opened:
        yield opened


def woken(wakes: Wakes, seconds: float) -> bool:
    ready, _, _ = select.select([wakes], [], [], seconds)
    return bool(ready) and wakes.drain()


def test_a_sleeper_is_notified_at_commit(wakes, writer):
    assert wakes.fall_asleep()
    writer.execute(ADD)
    assert not woken(wakes, 0.1), "not before the commit"
    writer.commit()
    assert woken(wakes, SOON)


def test_a_sleeper_is_not_notified_of_what_is_rolled_back(wakes, writer):
    assert wakes.fall_asleep()
    writer.execute(ADD)
    writer.rollback()
    assert not woken(wakes, 0.1)


def test_an_awake_consumer_costs_writers_no_notice_and_cannot_sleep_over_them(wakes, writer):
    writer.execute(ADD)
    assert not wakes.fall_asleep(), "a silent writer is open: dozing"
    writer.commit()
    assert not woken(wakes, 0.1), "it had promised nothing"
    assert wakes.fall_asleep()


def test_a_dozing_consumer_hears_of_every_later_writer(wakes, writer, database_url):
    writer.execute(ADD)
    assert not wakes.fall_asleep()
    with connect(database_url, "later") as later:
        later.execute(ADD)
    assert woken(wakes, SOON), "a long transaction of one writer slows no other"
    writer.commit()
    assert wakes.fall_asleep()


def test_what_arrives_with_a_reply_is_heard(wakes, writer):
    assert wakes.fall_asleep()
    writer.execute(ADD)
    writer.commit()
    wakes.wake_up()  # its reply comes behind the notice, and both are read at once
    assert wakes.drain() == [""]
    assert wakes.drain() == []


def test_a_consumer_that_wakes_up_silences_writers(wakes, writer):
    assert wakes.fall_asleep()
    wakes.wake_up()
    writer.execute(ADD)
    writer.commit()
    assert not woken(wakes, 0.1)
    assert wakes.fall_asleep()


def test_siblings_hear_the_notices_that_the_sleeper_among_them_causes(wakes, writer, database_url):
    sibling = Wakes(database_url, "sibling", RELAY_LOCK, relay_channel())
    sibling.open()
    assert wakes.fall_asleep()
    assert not sibling.fall_asleep(), "it polls"
    writer.execute(ADD)
    writer.commit()
    assert woken(wakes, SOON)
    assert woken(sibling, SOON)
    sibling.close()


def test_the_switch_for_prepared_transactions(wakes, writer):
    assert wakes.fall_asleep()
    writer.execute("set local weirkeeper.wake = off")
    writer.execute(ADD)
    writer.commit()
    assert not woken(wakes, 0.1)


def test_no_trailing_edge_is_lost(wakes, database_url):
    """A consumer without any poll, against writers of every pace: it never sleeps over a row."""
    per_writer, writers = 150, 4

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(database_url) as conn:
            for _ in range(per_writer):
                conn.execute(ADD)
                conn.execute("select pg_sleep(%s)", [chance.choice([0, 0, 0, 0.001, 0.01])])
                conn.commit()

    threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
    for thread in threads:
        thread.start()
    seen = 0
    with connect(database_url, "reader") as reader:
        while seen < per_writer * writers:
            seen += reader.execute("delete from weirkeeper.event_pending").rowcount
            # Dozing, the poll is for the silent writers still open, as the design says.
            asleep = wakes.fall_asleep()
            more = reader.execute("delete from weirkeeper.event_pending").rowcount
            seen += more
            if asleep and not more and seen < per_writer * writers:
                assert woken(wakes, SOON), f"slept over a row; {seen} seen"
            if random.random() < 0.5:
                wakes.wake_up()
    for thread in threads:
        thread.join()
