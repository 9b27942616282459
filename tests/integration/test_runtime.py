"""The runtime of an application's process: its sessions are shared, lost, opened again and ended."""

from __future__ import annotations

import threading

import psycopg
import pytest

from shared.app import load_app
from shared.errors import Conflict, DatabaseUnavailable, NotFound
from shared.postgres.application.runtime import PostgresRuntime
from tests.support.waiting import until
from weirkeeper import EnqueueOpts, JobFilter

SESSIONS = (
    "select pid from pg_stat_activity where application_name like 'weirkeeper shop%%'"
    " and datname = current_database()"
)


@pytest.fixture
def sql(database_url):
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield conn


@pytest.fixture
def runtime(database_url):
    made = PostgresRuntime(database_url, "shop", load_app(None))
    yield made
    made.stop()


def test_one_for_all_threads(runtime):
    jobs: list[str] = []

    def enqueue() -> None:
        for _ in range(20):
            jobs.append(runtime.enqueue("corpus.index", {"subject": "a"}))
            assert runtime.get(jobs[-1]).state == "pending"
            assert not runtime.wait(jobs[-1], 0).finished

    threads = [threading.Thread(target=enqueue) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(set(jobs)) == 80
    assert len(runtime.list(JobFilter(kind="corpus.index"), limit=100)) == 80


def test_what_is_lost_is_opened_again(runtime, sql):
    job = runtime.enqueue("corpus.index", {})
    runtime.get(job)
    sql.execute(f"select pg_terminate_backend(pid) from ({SESSIONS}) s")
    until(lambda: not sql.execute(SESSIONS).fetchall(), 10, "its sessions are gone")
    for call in (lambda: runtime.enqueue("corpus.index", {}), lambda: runtime.get(job)):
        with pytest.raises(DatabaseUnavailable):
            call()
        call()


def test_who_is_told_of_a_batch_may_look_and_others_do_not_wait_for_it(runtime):
    jobs = runtime.enqueue_many("corpus.index", [{"n": n} for n in range(3)])
    seen = []

    def told(total: int) -> None:
        other = threading.Thread(target=lambda: seen.append(runtime.get(jobs[0]).state))
        other.start()
        other.join(20)
        seen.extend([total, runtime.get(jobs[1]).state, runtime.cancel_many(JobFilter())])

    looking = threading.Thread(
        target=runtime.cancel_many, args=(JobFilter(),), kwargs={"told": told}
    )
    looking.daemon = True  # one that waits for itself would keep the tests from ending
    looking.start()
    until(lambda: len(seen) == 4, 20, "the batch was told of")
    assert seen == ["cancelled", 3, "cancelled", 0]


def test_an_error_does_not_cost_the_session(runtime, sql):
    runtime.enqueue("corpus.index", {})
    before = sql.execute(SESSIONS).fetchall()
    with pytest.raises(Exception, match="no such"):
        runtime.enqueue("no such", {})
    runtime.enqueue("corpus.index", {})
    assert sql.execute(SESSIONS).fetchall() == before


def test_stop_ends_its_sessions_for_good(runtime, sql):
    runtime.stop()
    with pytest.raises(Conflict, match="stopped"):
        runtime.start()


def test_stop_may_be_repeated(database_url, sql):
    with PostgresRuntime(database_url, "shop") as runtime:
        runtime.start()
        job = runtime.enqueue("corpus.index", {})
        runtime.wait(job, 0.01)
        assert sql.execute(SESSIONS).fetchall()
    runtime.stop()
    until(lambda: not sql.execute(SESSIONS).fetchall(), 10, "its sessions are gone")


def test_an_awaited_job_has_waits_connect(runtime, sql):
    reads = SESSIONS.replace("shop%%", "shop reads")
    runtime.start()
    runtime.enqueue("corpus.index", {})
    assert not runtime._waits._reads.started(), "nobody waits, nothing reads"
    runtime.enqueue("corpus.index", {}, EnqueueOpts(awaited=True))
    until(lambda: sql.execute(reads).fetchall(), 5, "the session that reads stands")


def test_an_awaited_job_in_a_transaction_of_the_callers_too(runtime, sql):
    with sql.transaction(force_rollback=True):
        runtime.with_tx(sql).enqueue_many("corpus.index", [{}], EnqueueOpts(awaited=True))
        assert runtime._waits._reads.started()


def test_a_transaction_of_the_callers(runtime, sql):
    with sql.transaction(force_rollback=True):
        job = runtime.with_tx(sql).enqueue("corpus.index", {})
        with pytest.raises(NotFound):
            runtime.get(job)
    with pytest.raises(NotFound):
        runtime.get(job)
