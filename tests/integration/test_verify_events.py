"""`weirkeeper verify` and events: what was fanned out is compared with what was wanted then."""

from __future__ import annotations

from shared.postgres.driver.connect import Connection
from shared.postgres.events.relay import PostgresOutbox
from shared.postgres.inspection.verify import violations
from tests.support.verifying import DAY, broken, conn_fixture, event, mended

__all__ = ["conn_fixture"]


def relayed(conn: Connection, hours: float = 0) -> str:
    """An event that was fanned out so long ago."""
    made = event(conn)
    PostgresOutbox(conn).next_pass()
    conn.execute(
        "update weirkeeper.event_fanout set fanned_out_at = now() - make_interval(hours => %s)"
        " where event_id = %s",
        (hours, made),
    )
    return made


def subscribe(conn: Connection, name: str, since: str) -> None:
    conn.execute(
        "insert into weirkeeper.kind (name, queue, max_attempts, timeout_ms, awaited)"
        " values (%s, 'index', 3, 1000, false)",
        (name,),
    )
    conn.execute(
        "insert into weirkeeper.route (type, subscription, coalesce, since)"
        " values ('corpus.note.changed', %s, false, now() + %s::interval)",
        (name, since),
    )


def test_a_subscription_that_came_later_has_missed_nothing(conn):
    relayed(conn)
    relayed(conn, 1)
    subscribe(conn, "late", "0 s")
    assert broken(conn) == []
    PostgresOutbox(conn).next_pass()
    assert broken(conn) == []


def test_a_subscription_that_a_fan_out_left_out_gets_the_event(conn):
    conn.execute("update weirkeeper.route set since = now() - interval '1 day'")
    subscribe(conn, "forgotten", "-2 hours")
    kept, lost, both = relayed(conn, 1), relayed(conn, 1), relayed(conn, 1)
    conn.execute(
        "update weirkeeper.event_fanout set jobs = jobs - 'forgotten' where event_id = %s", (lost,)
    )
    conn.execute("update weirkeeper.event_fanout set jobs = '{}' where event_id = %s", (both,))
    conn.execute("delete from weirkeeper.ready; delete from weirkeeper.job")
    conn.execute("delete from weirkeeper.event_fanout where event_id = %s", (kept,))
    conn.execute("delete from weirkeeper.event where id = %s", (kept,))
    found = [v for v in violations(conn, DAY) if v.rule == "event_unheard"]
    assert {v.subject: v.detail for v in found} == {
        lost: "of type corpus.note.changed: not given to forgotten",
        both: "of type corpus.note.changed: not given to corpus.index, forgotten",
    }
    done = {m[1]: m[2] for m in mended(conn) if m[0] == "event_unheard"}
    assert done == {lost: "given to forgotten", both: "given to corpus.index, forgotten"}
    assert [v.rule for v in violations(conn, DAY) if v.rule.startswith("event_")] == []
    jobs = conn.execute(
        "select kind, event_id::text, priority from weirkeeper.job order by 1, 2"
    ).fetchall()
    assert jobs == [
        ("corpus.index", both, 4),
        *(("forgotten", e, 4) for e in sorted((lost, both))),
    ]
    assert mended(conn) == []


def test_an_empty_fan_out_and_one_that_names_null_are_skips_and_no_losses(conn):
    conn.execute("update weirkeeper.route set since = now() - interval '1 day'")
    unwanted = conn.execute("select weirkeeper.record_event('owner.login')::text").fetchone()[0]
    PostgresOutbox(conn).next_pass()
    skipped = relayed(conn, 1)
    conn.execute("delete from weirkeeper.ready; delete from weirkeeper.job")
    conn.execute(
        "update weirkeeper.event_fanout set jobs = '{\"corpus.index\": null}' where event_id = %s",
        (skipped,),
    )
    row = conn.execute(
        "select jobs from weirkeeper.event_fanout where event_id = %s", (unwanted,)
    ).fetchone()
    assert row == ({},)
    assert broken(conn) == []


def test_a_second_job_for_an_event_is_told_unless_a_replay_made_it(conn):
    made = relayed(conn)
    twin = conn.execute(
        "insert into weirkeeper.job (kind, queue, args, max_attempts, timeout_ms, awaited, event_id)"
        " select kind, queue, args, max_attempts, timeout_ms, awaited, event_id"
        " from weirkeeper.job returning id"
    ).fetchone()[0]
    conn.execute(
        "insert into weirkeeper.ready (queue, kind, priority, job_id)"
        " values ('index', 'corpus.index', 2, %s)",
        (twin,),
    )
    assert broken(conn) == [("event_twice", str(twin))]
    assert mended(conn) == []
    conn.execute("delete from weirkeeper.ready where job_id = %s", (twin,))
    conn.execute("delete from weirkeeper.job where id = %s", (twin,))
    conn.execute(
        "select weirkeeper.deliver_again('corpus.index', array[%s::uuid], 'replay:1')", (made,)
    )
    assert conn.execute("select count(*) from weirkeeper.job").fetchone() == (2,)
    assert broken(conn) == []
