"""The beat of a process whose sessions are ended: heard at the very next turn."""

from __future__ import annotations

import psycopg
import pytest

from shared.config.installation import schema_name
from shared.postgres.processes import registry
from shared.postgres.processes.life import Life
from shared.postgres.processes.registry import BEAT, Registration, beat, register
from shared.services.process import identity
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


def test_a_beat_ends_the_sessions_of_who_is_silent_and_nobody_elses(database_url, monkeypatch):
    monkeypatch.setattr(registry, "SILENT", 0.3)
    names = ("frozen", "stranger", "ended", "late", "awake", "own")
    held: dict[str, psycopg.Connection] = {}

    def opens(*these: str) -> None:
        for name in these:
            ours = "shop" if name == "stranger" else f"{schema_name()} {name}"
            held[name] = psycopg.connect(database_url, application_name=ours)

    def pids(*these: str) -> list[int]:
        return [held[name].info.backend_pid for name in these]

    with session(database_url) as conn:
        life = {
            name: register(conn, identity(), WHAT) for name in ("frozen", "ended", "awake", "own")
        }
        opens("frozen", "stranger", "ended")
        beat(conn, life["frozen"], "ready", None, pids("frozen", "stranger"))
        beat(conn, life["ended"], "ready", None, [])
        opens("late", "awake", "own")
        # It got the number of a session that ended.
        conn.execute(
            "update weirkeeper.process set backend_pids = backend_pids || %s::int[],"
            " phase = case when epoch = %s then 'stopped' else phase end where epoch = any(%s)",
            [pids("late"), life["ended"], [life["frozen"], life["ended"]]],
        )
        conn.execute(
            "update weirkeeper.process set backend_pids = backend_pids || %s::int[] where epoch = %s",
            [pids("ended"), life["ended"]],
        )
        silent = "select clock_timestamp() > beat_at + interval '0.4 s' from weirkeeper.process where epoch = %s"
        until(lambda: conn.execute(silent, [life["frozen"]]).fetchone()[0], 10, "it is silent")
        beat(conn, life["awake"], "ready", None, [])
        conn.execute(
            "update weirkeeper.process set backend_pids = %s where epoch = %s",
            [pids("awake"), life["awake"]],
        )
        there = "select pid from pg_stat_activity where pid = any(%s)"

        def living() -> set[int]:
            return {pid for (pid,) in conn.execute(there, [pids(*names)]).fetchall()}

        beat(conn, life["own"], "ready", None, pids("own"))
        until(lambda: pids("frozen")[0] not in living(), 10, "it is ended")
        assert living() == set(pids(*names)) - set(pids("frozen"))
        assert beat(conn, life["own"], "ready", None, pids("own")).ended == 0
    for one in held.values():
        one.close()
