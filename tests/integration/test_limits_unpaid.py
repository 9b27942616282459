"""Limits cost those alone who have them: jobs without any are claimed and finished as if none existed."""

from __future__ import annotations

from contextlib import closing

import pytest

from shared.jobs.work import Completed
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.queues import completions
from shared.postgres.queues.lines import MOMENT, Lines
from tests.support.plans import Watch
from tests.support.steps import EPOCH, KIND, QUEUE, steps_fixture  # noqa: F401
from tests.support.works import Clock

OTHER = "t.noop"
# Where a job without limits is, was and comes to; `paused` is a kind's or a queue's.
PATH = {"ready", "ready_seq", "running", "job", "attempt", "paused"}
LIMITS = {
    "a rate": "update weirkeeper.kind set rate_n = 1000, rate_ms = 1000 where name = %s",
    "turns": "update weirkeeper.kind set fair = true where name = %s",
    "a key": "update weirkeeper.kind set max_per_key = 1 where name = %s",
}


def some(steps, number: int = 1000) -> None:
    """Jobs without limits, more than are claimed."""
    steps.conn.execute(
        "insert into weirkeeper.job (kind) select %s from generate_series(1, %s)", (KIND, number)
    )


def take(lines: Lines, conn: Connection) -> int:
    taken = lines.claim([KIND, OTHER], 10)
    assert {claim.kind for claim in taken} <= {KIND}
    return completions.complete(conn, EPOCH, [Completed(taken, 0.0)])


def seek(lines: Lines, conn: Connection) -> None:
    """Until the kind with a limit was looked for, in vain."""
    for _ in range(2):
        assert take(lines, conn) == 10


@pytest.mark.parametrize("limit", LIMITS)
def test_tables_of_limits_are_not_even_read(steps, limit):
    steps.conn.execute(LIMITS[limit], (OTHER,))
    some(steps)
    with closing(connect(steps.url, "plans", Use.HOT)) as conn:
        lines = Lines(conn, QUEUE, EPOCH, Clock())
        seek(lines, conn)
        watch = Watch(conn)
        with watch.plans() as plans:
            assert take(lines, conn) == 10
    tables = {node["Relation Name"] for p in plans for node in p.nodes() if "Relation Name" in node}
    assert {"ready", "job"} <= tables <= PATH


@pytest.mark.parametrize("limit", LIMITS)
def test_a_claim_is_one_statement_whatever_other_kinds_declare(steps, limit):
    steps.conn.execute(LIMITS[limit], (OTHER,))
    some(steps)
    with closing(connect(steps.url, "plans", Use.HOT)) as conn:
        lines = Lines(conn, QUEUE, EPOCH, Clock())
        seek(lines, conn)
        watch = Watch(conn)
        for _ in range(4):
            with watch.plans() as plans:
                assert len(lines.claim([KIND, OTHER], 10)) == 10
            assert len([p for p in plans if "set_config" not in p.text]) == 1


@pytest.mark.parametrize("limit", LIMITS)
def test_what_comes_in_line_is_found_a_moment_later_beside_any_number_of_others(steps, limit):
    steps.conn.execute(LIMITS[limit], (OTHER,))
    some(steps)
    clock = Clock()
    lines = Lines(steps.conn, QUEUE, EPOCH, clock)
    seek(lines, steps.conn)
    steps.enqueue(OTHER, owner_id="ada")
    clock.now += MOMENT
    kinds = [claim.kind for _ in range(3) for claim in lines.claim([KIND, OTHER], 10)]
    assert kinds.count(OTHER) == 1, kinds


@pytest.mark.parametrize("limit", LIMITS)
def test_nothing_means_that_everything_was_looked_at(steps, limit):
    """Whoever finds nothing goes to sleep: no moment may pass in between."""
    steps.conn.execute(LIMITS[limit], (OTHER,))
    lines = Lines(steps.conn, QUEUE, EPOCH, Clock())
    for _ in range(3):
        assert lines.claim([KIND, OTHER], 10) == []
        steps.enqueue(OTHER, owner_id="ada")
        assert [claim.kind for claim in lines.claim([KIND, OTHER], 10)] == [OTHER]
