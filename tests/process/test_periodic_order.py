"""Retention and verify beside real work: nothing that lives is pruned, no promise looks broken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared.postgres.driver.connect import Use, connect
from shared.postgres.inspection.verify import violations
from shared.postgres.queues.retention import prune_events, prune_jobs
from tests.support.past import never
from tests.support.processes import Programs
from tests.support.queue import TestQueue


@pytest.fixture
def queue(programs: Programs, database_url: str) -> Iterator[TestQueue]:
    made = TestQueue(programs, database_url)
    yield made
    made.conn.close()


@pytest.mark.timeout(240)
def test_while_jobs_fail_snooze_and_die_nothing_that_lives_is_pruned(queue, database_url):
    """Everything is pruned the moment that it ends; every job has run, and none twice too often."""
    queue.start("--slot", "t")
    queue.start("--slot", "t-2")
    queue.programs.start("relay", env=queue.env)
    fine, failing, snoozing, dying = [], [], [], []
    seen, pruned = set(), 0
    with connect(database_url, "prune", Use.HANDLER) as conn:
        for turn in range(40):
            fine += [queue.enqueue("ok") for _ in range(10)]
            failing += [queue.enqueue("fail", {"times": 2})]
            snoozing += [queue.enqueue("answer", {"answer": "snooze", "seconds": 0.05})]
            if turn % 10 == 0:
                dying += [queue.enqueue("die", {"times": 1})]
            queue.record(subject=f"thing/{turn}")
            pruned += prune_jobs(conn, 0, 0, never).rows
            prune_events(conn, 0, never)
            seen |= {(v.rule, v.detail) for v in violations(conn, kept=0)}
        while queue.count("job") or queue.count("event"):
            pruned += prune_jobs(conn, 0, 0, never).rows
            prune_events(conn, 0, never)
            seen |= {(v.rule, v.detail) for v in violations(conn, kept=0)}
    assert seen == set()
    assert queue.count("attempt") == 0
    assert pruned == len(fine + failing + snoozing + dying) + 40
    assert {len(queue.effects(job)) for job in fine} == {1}
    assert {len(queue.effects(job)) for job in failing} == {3}
    assert {len(queue.effects(job)) for job in snoozing + dying} == {2}
