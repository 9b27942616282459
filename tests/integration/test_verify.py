"""`weirkeeper verify`: rows only on violation; each sort planted, seen, mended the safe way."""

from __future__ import annotations

import json

import pytest

from panel.cli import main as cli
from shared.jobs.port import Unique
from shared.postgres.events.relay import PostgresOutbox
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.inspection.verify import rules, violations
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.completions import Finish, finish
from tests.support.verifying import (
    DAY,
    KIND,
    add,
    broken,
    conn_fixture,
    event,
    log_end,
    mended,
    owner,
    schedule,
    where,
)

__all__ = ["conn_fixture"]


def test_what_the_engine_does_itself_breaks_nothing(conn):
    event(conn)
    assert broken(conn) == []
    PostgresOutbox(conn).next_pass()
    epoch = owner(conn)
    numbers = [add(conn) for _ in range(8)]
    later = add(conn, unique=Unique())
    assert broken(conn) == []
    claims = {c.job_id: c for c in Claims(conn, "index", epoch).claim([KIND], 20)}
    assert broken(conn) == []
    ends = [
        Finish(0, 0),
        Finish(0, 0, outcome="failed", state="retryable", delay=60.0),
        Finish(0, 0, outcome="failed", state="discarded"),
        Finish(0, 0, outcome="snoozed", state="pending", delay=0, spent=False),
    ]
    for number, end in zip(numbers, ends, strict=False):
        claim = claims[number]
        fields = {name: getattr(end, name) for name in ("outcome", "state", "delay", "spent")}
        finish(conn, epoch, [Finish(claim.job_id, claim.token, **fields)])
    assert broken(conn) == []
    inspector = PostgresInspector(conn)
    inspector.retry(str(numbers[2]))
    inspector.cancel(str(numbers[4]))
    inspector.cancel(str(later))
    assert broken(conn) == []
    assert mended(conn) == []


def test_a_job_that_is_nowhere_gets_back_in_line(conn):
    fresh, tried = add(conn), add(conn)
    conn.execute("delete from weirkeeper.ready")
    conn.execute(
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state)"
        " values (%s, 3, 2, 'failed', 'retryable')",
        (tried,),
    )
    assert broken(conn) == [("job_nowhere", str(fresh)), ("job_nowhere", str(tried))]
    assert sorted(mended(conn)) == [
        ("job_nowhere", str(fresh), "put in line"),
        ("job_nowhere", str(tried), "put in line"),
    ]
    assert broken(conn) == []
    claims = {c.job_id: (c.run, c.attempt) for c in Claims(conn, "index", 1).claim([KIND], 5)}
    assert claims == {fresh: (2, 0), tried: (5, 2)}
    assert PostgresInspector(conn).get(str(tried)).attempts[-1].cause == "verify"


@pytest.mark.parametrize(
    ("places", "stays"),
    [
        (("ready", "scheduled"), "ready"),
        (("ready", "running", "scheduled"), "running"),
        (("scheduled", "running"), "running"),
        (("ready", "parked"), "ready"),
        (("parked", "scheduled"), "parked"),
    ],
)
def test_a_job_that_is_in_two_places_stays_in_one(conn, places, stays):
    number, epoch = add(conn), owner(conn)
    if "running" in places:
        conn.execute(
            "insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token)"
            " values (%s, 1, 0, 'index', 'corpus.index', 2, %s, 1)",
            (number, epoch),
        )
    if "scheduled" in places:
        schedule(conn, number)
    if "parked" in places:
        conn.execute("insert into weirkeeper.key (name) values ('k')")
        conn.execute(
            "insert into weirkeeper.parked values (%s, 'k', 'index', 'corpus.index', 2, 0, 0)",
            (number,),
        )
    if "ready" not in places:
        conn.execute("delete from weirkeeper.ready")
    assert broken(conn) == [("job_twice", str(number))]
    assert {rule for rule, *_ in mended(conn)} == {"job_twice"}
    assert where(conn, number) == [stays]
    assert broken(conn) == []


@pytest.mark.parametrize("state", ["completed", "discarded"])
def test_a_job_that_has_ended_does_not_wait(conn, state):
    in_line, later = add(conn), add(conn)
    conn.execute("delete from weirkeeper.ready where job_id = %s", (later,))
    schedule(conn, later)
    log_end(conn, in_line, state)
    log_end(conn, later, state)
    assert broken(conn) == [("ended_but_waits", str(in_line)), ("ended_but_waits", str(later))]
    assert len(mended(conn)) == 2
    assert (where(conn, in_line), where(conn, later)) == ([], [])
    assert PostgresInspector(conn).get(str(in_line)).state == state


def test_rows_without_their_job_go(conn):
    number = add(conn, unique=Unique())
    log_end(conn, number, "discarded")
    schedule(conn, number)
    conn.execute("delete from weirkeeper.job")
    assert broken(conn)[-1] == ("row_without_job", str(number))
    assert ("row_without_job", str(number), "4 rows removed") in mended(conn)
    assert broken(conn) == []
    assert add(conn, unique=Unique()) != number


@pytest.mark.parametrize("missing", [True, False])
def test_a_running_job_without_an_owner_is_taken_back(conn, missing):
    number = add(conn)
    epoch = 4711 if missing else owner(conn, "stopped", silent=90)
    [claim] = Claims(conn, "index", epoch).claim([KIND], 1)
    assert broken(conn) == [("running_without_owner", str(number))]
    assert mended(conn) == [("running_without_owner", str(number), "taken back from its owner")]
    assert where(conn, number) == ["ready"]
    assert finish(conn, epoch, [Finish(claim.job_id, claim.token)]) == 0


def test_a_stop_that_the_rescue_will_see_to_is_no_violation(conn):
    add(conn)
    Claims(conn, "index", owner(conn, "stopped", silent=5)).claim([KIND], 1)
    assert broken(conn) == []


def test_a_parked_job_without_its_key_gets_in_line(conn):
    number = add(conn)
    conn.execute("delete from weirkeeper.ready")
    conn.execute("set session_replication_role = replica")  # as a restore goes around the keys
    conn.execute(
        "insert into weirkeeper.parked values (%s, 'gone', 'index', 'corpus.index', 2, 1, 1)",
        (number,),
    )
    conn.execute("reset session_replication_role")
    assert broken(conn) == [("parked_without_key", str(number))]
    assert mended(conn) == [("parked_without_key", str(number), "put in line")]
    assert where(conn, number) == ["ready"]


def test_an_event_that_is_in_no_line_is_fanned_out_after_all(conn):
    lost, kept = event(conn), event(conn)
    conn.execute("delete from weirkeeper.event_pending where event_id = %s", (lost,))
    assert broken(conn) == [("event_lost", lost)]
    assert mended(conn) == [("event_lost", lost, "handed to the relay")]
    assert broken(conn) == []
    outbox = PostgresOutbox(conn)
    for event_id, _ in outbox.due(10):
        outbox.fan_out_again(event_id)
    outbox.next_pass()
    fanned = {str(row[0]) for row in conn.execute("select event_id from weirkeeper.event_fanout")}
    assert fanned == {lost, kept}
    assert broken(conn) == []


def test_a_fan_out_whose_job_is_missing_is_told_and_not_mended(conn):
    number = event(conn)
    PostgresOutbox(conn).next_pass()
    conn.execute("delete from weirkeeper.ready")
    conn.execute("delete from weirkeeper.job")
    [found] = violations(conn, DAY)
    assert (found.rule, found.subject) == ("fanout_without_job", number)
    assert "of corpus.index is not there" in found.detail
    assert mended(conn) == []
    conn.execute("update weirkeeper.event_fanout set fanned_out_at = now() - interval '25 hours'")
    assert broken(conn) == []  # by then its job may have been pruned


@pytest.mark.parametrize(
    "lost", ["update {} set total = total + 1 where n = 3", "delete from {} where n = 2"]
)
def test_starts_that_do_not_add_up_are_counted_anew(conn, lost):
    conn.execute("update weirkeeper.kind set rate_n = 9, rate_ms = 60000 where name = %s", (KIND,))
    conn.execute(
        "insert into weirkeeper.rate_start (kind, n) select %s, n from unnest(array[1, 2, 3, 1]) n",
        (KIND,),
    )
    assert broken(conn) == []
    conn.execute(lost.format("weirkeeper.rate_start"))
    assert broken(conn) == [("starts_miscounted", KIND)]
    assert mended(conn) == [("starts_miscounted", KIND, "counted anew")]
    assert broken(conn) == []
    look = "select sum(n) + (weirkeeper.rate_room(%s)).room from weirkeeper.rate_start"
    assert conn.execute(look, (KIND,)).fetchone()[0] == 9


def test_more_violations_than_are_shown_at_once_are_all_mended(conn):
    conn.execute(
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state)"
        " select n, 1, 1, 'completed', 'completed' from generate_series(1, 2500) n"
    )
    assert len(violations(conn, DAY)) == 1000
    assert len(mended(conn)) == 2500
    assert broken(conn) == []


def test_every_rule_has_been_planted():
    assert {rule.name for rule in rules()} == {
        "row_without_job", "job_twice", "ended_but_waits", "job_nowhere",
        "running_without_owner", "parked_without_key", "parked_though_free", "event_lost",
        "fanout_without_job",
        "event_unheard", "event_twice", "starts_miscounted",
        "running_unheld", "row_astray", "unique_kept", "unique_lost", "expiry_lost",
    }  # fmt: skip


@pytest.fixture
def command(monkeypatch, database_url, capsys, tmp_path):
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("WEIRKEEPER_HOME", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str]:
        code = cli.main(["verify", *arguments])
        return code, capsys.readouterr().out

    return run


def test_the_command_tells_and_mends(conn, command):
    assert command() == (0, f"all {len(rules())} promises are kept\n")
    number = add(conn)
    conn.execute("delete from weirkeeper.ready")
    code, out = command()
    assert code == 1
    assert f"job_nowhere  {number}" in out
    code, out = command("--json")
    assert (code, json.loads(out)["violations"][0]["subject"]) == (1, str(number))
    code, out = command("--repair")
    assert code == 0
    assert f"mended job_nowhere {number}: put in line" in out
    assert command()[0] == 0


def test_the_command_fails_while_something_is_left(conn, command):
    event(conn)
    PostgresOutbox(conn).next_pass()
    conn.execute("delete from weirkeeper.ready")
    conn.execute("delete from weirkeeper.job")
    code, out = command("--repair", "--json")
    told = json.loads(out)
    assert (code, told["mended"], len(told["violations"])) == (1, [], 1)
