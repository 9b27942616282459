"""The ground that tests stand on."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.processes import Programs
from tests.support.waiting import until


def test_a_database_of_its_own(database_url):
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "select datcollate from pg_database where datname = current_database()"
        ).fetchone()
    assert row == ("C.UTF-8",)


def test_until_tells_what_it_waited_for():
    with pytest.raises(AssertionError, match=r"waited 0\.05 s for: the moon; last seen: 0"):
        until(lambda: 0, 0.05, "the moon")


def test_a_leaked_process_is_found_and_killed(tmp_path):
    programs = Programs(tmp_path, "")
    shell = programs.execute(["/bin/sh", "-c", "sleep 600 & exit 0"])
    assert shell.wait(5) == 0
    until(lambda: len(programs.living()) == 1, 5, "its child is left")
    with pytest.raises(AssertionError, match=r"leaked processes: .*sleep 600"):
        programs.close()
    until(lambda: not programs.living(), 5, "it has been killed")
