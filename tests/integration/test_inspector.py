"""What the inspector sees: a job's state is where its row is."""

from __future__ import annotations

import re
from itertools import chain

import psycopg
import pytest

from shared.errors import InvalidArguments, NotFound
from shared.jobs.port import JobFilter
from shared.jobs.states import STATES
from shared.postgres.driver.connect import Use, connect
from shared.postgres.driver.statements import statement
from shared.postgres.inspection.inspector import PostgresInspector


@pytest.fixture
def sql(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def inspector(database_url):
    with connect(database_url, "tests", Use.READ) as conn:
        yield PostgresInspector(conn)


def enqueue(sql, args="{}", **columns):
    return sql.execute(
        "select weirkeeper.enqueue('corpus.index', %s::jsonb, run_at => %s)",
        (args, columns.get("run_at")),
    ).fetchone()[0]


def finish(sql, job_id, state, outcome, run=1):
    sql.execute("delete from weirkeeper.ready where job_id = %s", (job_id,))
    sql.execute(
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, error, started_at)"
        " values (%s, %s, 1, %s, %s, 'why', now())",
        (job_id, run, outcome, state),
    )


@pytest.fixture
def one_of_each(sql):
    pending, later, retryable, running, completed, discarded, cancelled = (
        enqueue(sql, run_at="2100-01-01" if n == 1 else None) for n in range(7)
    )
    sql.execute("update weirkeeper.ready set attempt = 2, run = 2 where job_id = %s", (retryable,))
    sql.execute(
        "with gone as (delete from weirkeeper.ready where job_id = %s returning *)"
        " insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token)"
        " select job_id, 1, 1, queue, kind, priority, 1, 1 from gone",
        (running,),
    )
    finish(sql, completed, "completed", "completed")
    finish(sql, discarded, "discarded", "discarded")
    finish(sql, cancelled, "cancelled", "cancelled")
    return {
        "pending": [later, pending],
        "retryable": [retryable],
        "running": [running],
        "completed": [completed],
        "discarded": [discarded],
        "cancelled": [cancelled],
    }


def test_lists_by_state_and_kind_newest_first(inspector, one_of_each):
    every = inspector.list()
    assert [int(job.id) for job in every] == sorted(chain(*one_of_each.values()), reverse=True)
    for state in STATES:
        found = inspector.list(JobFilter(state=state))
        assert [int(job.id) for job in found] == one_of_each[state], state
        assert {job.state for job in found} == {state}
        assert inspector.list(JobFilter(state=state, kind="no.such")) == []
    assert len(inspector.list(JobFilter(kind="corpus.index"))) == 7
    assert all(job.args is None and isinstance(job.id, str) for job in every)


def test_pages_by_keyset(sql, inspector):
    ids = [enqueue(sql) for _ in range(7)]
    seen, before = [], None
    while page := inspector.list(limit=3, before=before):
        seen += [int(job.id) for job in page]
        before = page[-1].id
    assert seen == ids[::-1]
    with pytest.raises(InvalidArguments, match="before: expected the id of a job"):
        inspector.list(before="x")


def test_a_job_with_everything(sql, inspector):
    job_id = enqueue(sql, '{"n": 1, "文": ["a"]}')
    finish(sql, job_id, "retryable", "failed", run=1)
    finish(sql, job_id, "completed", "completed", run=2)
    sql.execute(
        "update weirkeeper.attempt set result = '[1]', evidence = '{\"signal\": 9}' where run = 2"
    )
    job = inspector.get(str(job_id))
    assert (job.id, job.kind, job.queue, job.state) == (
        str(job_id), "corpus.index", "index", "completed",
    )  # fmt: skip
    assert (job.args, job.result) == ({"n": 1, "文": ["a"]}, [1])
    assert [(a.run, a.outcome, a.error) for a in job.attempts] == [
        (1, "failed", "why"),
        (2, "completed", "why"),
    ]
    assert job.attempts[1].evidence == {"signal": 9}
    assert job.attempts[0].started_at.endswith("+00:00")


def test_the_next_try_is_shown(sql, inspector):
    job_id = enqueue(sql, run_at="2100-01-01T00:00Z")
    assert inspector.get(str(job_id)).scheduled_at == "2100-01-01T00:00:00.000+00:00"


@pytest.mark.parametrize("job_id", ["1", "", "x", "-1", "1" * 5000, "9" * 19, "１"])
def test_no_such_job(inspector, job_id):
    with pytest.raises(NotFound, match="job: expected"):
        inspector.get(job_id)


@pytest.mark.parametrize("name", ["newest", "waiting", "running", "ended", "describe"])
def test_a_list_reads_args_only_to_compare_them(name):
    text = statement(f"inspector/{name}")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    compared = re.sub(r"%\(args\)s::text is null|\w\.args @> %\(args\)s::jsonb", "", code)
    assert "args" not in compared
    assert "*" not in code.replace("select * from (\n    (select y.job_id", "")
