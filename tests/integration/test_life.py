"""The beat of a process whose sessions are ended: heard at the very next turn."""

from __future__ import annotations

import pytest

from shared.postgres.processes.life import Life
from shared.postgres.processes.registry import BEAT, Registration
from tests.support.rows import session
from tests.support.waiting import until

WHAT = Registration("listener", "listener", None, "1", 3, 0)


def test_a_beat_whose_session_was_ended_is_sent_again_at_once(database_url):
    life = Life(database_url, WHAT, lambda: pytest.fail("fenced"), pytest.fail)
    with session(database_url) as conn:
        life.start()
        until(lambda: life.beat_age() < BEAT / 2, 10, "it beats")
        for _ in range(3):
            conn.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where application_name = 'weirkeeper listener beat'"
                " and datname = current_database()"
            )
            conn.execute("update weirkeeper.process set beat_at = now() - interval '9 s'")
            life.say("ready")  # a turn, as the ticker does it
            (age,) = conn.execute(
                "select extract(epoch from clock_timestamp() - beat_at) from weirkeeper.process"
            ).fetchone()
            assert age < 8
        life.stop()
