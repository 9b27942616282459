"""`weirkeeper health`: what a probe is told, with a database and without."""

from __future__ import annotations

import os
import signal

from shared.clock import SYSTEM
from shared.telemetry.instruments import open_instruments
from shared.telemetry.turns import LATE
from tests.support.flow import cli
from tests.support.queue import TestQueue, queue
from tests.support.waiting import until

__all__ = ["queue"]

AWAY = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
APP = {"WEIRKEEPER_APP": "tests.support.app:app"}


def health(programs, *arguments, env=None):
    program = cli(programs, "health", *arguments, env={**APP, **(env or {})})
    return program.wait(60), program.text()


def test_a_process_that_works_is_well_and_ready(programs, queue: TestQueue):
    assert health(programs) == (1, "no process of this home lives\n")
    program = queue.start()
    assert health(programs) == (0, "t: well\n")
    assert health(programs, "--process", "t", "--ready") == (0, "t: well\n")
    assert health(programs, "--process", "u") == (1, "u: no process of this home has this slot\n")
    os.kill(program.pid, signal.SIGKILL)
    program.wait(30)
    until(lambda: not programs.living(), 30, "everything of it has ended")
    assert health(programs, "--process", "t")[0] == 1


def test_a_database_that_is_away_makes_it_unready_and_nobody_kills_it(programs, queue: TestQueue):
    program = queue.start(ready=False, **AWAY)
    until(lambda: "waiting for the database" in program.text(), 30, "it waits")
    assert health(programs, "--process", "t", env=AWAY) == (0, "t: well\n")
    code, said = health(programs, "--process", "t", "--ready", env=AWAY)
    assert code == 1
    assert "the database does not answer" in said


def test_a_loop_that_hangs_is_named(programs):
    instruments = open_instruments(programs.home, "t")
    try:
        instruments.loop_age_seconds.labels("claims").set(SYSTEM.monotonic() - LATE - 1)
        instruments.turned("pool")
        code, said = health(programs)
        assert (code, said) == (1, f"t: has not turned for {LATE:g} s: claims\n")
    finally:
        instruments.close()
