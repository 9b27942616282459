"""A network that goes dark without a word: the loss is seen, and healed, whoever is told nothing."""

from __future__ import annotations

import threading
import time
from urllib.parse import urlsplit

import pytest

from shared.notices.channels import FINAL
from shared.notices.source import NoticeSource
from shared.notices.waiters import Waiters
from shared.postgres.application.ear import PostgresEar
from tests.support.dark_network import NEAR, DarkNetwork, possible
from tests.support.rows import enqueue, finish, session
from tests.support.waiting import until

SEEN = 12.0  # seconds until a dark network must have been noticed


class FarEar(PostgresEar):
    """Hears from the far end of a network."""

    def __init__(self, url: str, network: DarkNetwork) -> None:
        super().__init__(url, "far")
        self._network = network

    def open(self) -> None:
        self._network.enter()
        super().open()


@pytest.fixture
def network(database_url):
    if not possible():
        pytest.skip("needs root and iproute2: network namespaces")
    made = DarkNetwork(urlsplit(database_url).port or 5432)
    yield made
    made.close()


def test_a_half_open_connection_is_noticed_and_made_anew(database_url, network):
    parts = urlsplit(database_url)
    far = parts._replace(netloc=f"{parts.username}:{parts.password}@{NEAR}:{network.port}").geturl()
    waiters, woken = Waiters(), threading.Event()
    source = NoticeSource(FarEar(far, network), waiters, pytest.fail, always=True)
    source.start()
    try:
        until(lambda: source.connected, 10, "LISTEN stands")
        with session(database_url) as conn:
            job_id = enqueue(conn)
            with waiters.register(FINAL, job_id, woken.set):
                network.cut()
                dark = time.monotonic()
                finish(conn, job_id)  # said into the dark
                until(lambda: not source.connected, SEEN + 6, "the loss is noticed")
                assert time.monotonic() - dark < SEEN + 3, "with some time for a slow machine"
                woken.clear()
                network.heal()
                until(lambda: source.connected, 3, "LISTEN stands again")
                assert woken.wait(5), "whoever waits looks again"
    finally:
        source.stop()
