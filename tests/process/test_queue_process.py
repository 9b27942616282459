"""A queue process with real children and a real Postgres: what becomes of jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.queue import TestQueue, queue
from tests.support.waiting import until

__all__ = ["queue"]


def test_a_job_completes_with_its_result(queue: TestQueue) -> None:
    queue.start()
    job = queue.enqueue("ok", {"result": {"a": [1, None, "é"]}})
    last = queue.final(job)
    assert (last["outcome"], last["attempt"], last["run"]) == ("completed", 1, 1)
    assert last["result"] == {"a": [1, None, "é"]}
    assert last["started_at"] >= last["claimed_at"]
    assert len(queue.effects(job, "end")) == 1
    assert queue.where(job) == []


def test_jobs_that_waited_before_the_start_are_all_run_once(queue: TestQueue) -> None:
    jobs = [queue.enqueue("ok") for _ in range(60)]
    queue.start()
    assert {queue.final(job)["outcome"] for job in jobs} == {"completed"}
    assert all(len(queue.effects(job)) == 1 for job in jobs)


def test_a_second_job_is_picked_up_without_waiting_for_a_poll(queue: TestQueue) -> None:
    queue.start()
    for _ in range(5):
        queue.final(queue.enqueue("ok"))
    rows = queue.conn.execute(
        "select extract(epoch from a.finished_at - j.created_at)::float as took"
        " from weirkeeper.attempt a join weirkeeper.job j on j.id = a.job_id order by took"
    ).fetchall()
    assert rows[2][0] < 0.25  # the median; a sleeper polls once a second


def test_args_of_256_kib_arrive(queue: TestQueue) -> None:
    queue.start()
    text = "x" * (256 * 1024 - 20)
    assert queue.final(queue.enqueue("size", {"text": text}))["result"] == len(text)


def test_failures_are_retried_until_attempts_are_spent(queue: TestQueue) -> None:
    queue.start()
    job = queue.enqueue("fail", {"message": "a\x1bb"})
    last = queue.final(job)
    assert (last["outcome"], last["state"], last["attempt"]) == ("failed", "discarded", 3)
    assert queue.outcomes(job) == ["failed"] * 3
    assert [a["state"] for a in queue.attempts(job)] == ["retryable", "retryable", "discarded"]
    assert all(a["error"] == "ValueError: a\x1bb" for a in queue.attempts(job))
    assert "raise ValueError" in last["evidence"]["stack"]


def test_an_error_with_nul_and_surrogates_is_stored_clean(queue: TestQueue) -> None:
    queue.start()
    codes = [ord("a"), 0, ord("b"), 0xD800, ord("c")]
    job = queue.enqueue("fail", {"times": 1, "codes": codes})
    assert queue.final(job)["outcome"] == "completed"
    assert queue.outcomes(job) == ["failed", "completed"]
    first, _ = queue.attempts(job)
    assert (first["state"], first["error"]) == ("retryable", "ValueError: a\ufffdb?c")


@pytest.mark.parametrize(
    ("args", "outcomes", "state", "spent"),
    [
        ({"answer": "snooze", "seconds": 0.2, "times": 3}, ["snoozed"] * 3 + ["completed"], "completed", 1),
        ({"answer": "snooze", "seconds": 0}, ["snoozed", "completed"], "completed", 1),
        ({"answer": "discard"}, ["discarded"], "discarded", 1),
        ({"answer": "retry", "seconds": 0.1}, ["failed", "completed"], "completed", 2),
        ({"answer": "nonsense"}, ["failed", "completed"], "completed", 2),
        ({"answer": "huge"}, ["failed", "completed"], "completed", 2),
        ({"answer": "exit"}, ["failed", "completed"], "completed", 2),
        ({"answer": "snooze", "seconds": -1}, ["failed", "completed"], "completed", 2),
    ],
)  # fmt: skip
def test_what_a_handler_answers_decides(
    queue: TestQueue, args: dict[str, Any], outcomes: list[str], state: str, spent: int
) -> None:
    queue.start(WEIRKEEPER_CHILDREN="t=1")
    job = queue.enqueue("answer", args)
    last = queue.final(job)
    assert queue.outcomes(job) == outcomes
    assert (last["state"], last["attempt"]) == (state, spent)


def test_a_snooze_waits_at_least_its_time(queue: TestQueue) -> None:
    queue.start(WEIRKEEPER_CHILDREN="t=1")
    job = queue.enqueue("answer", {"answer": "snooze", "seconds": 0.8})
    queue.final(job)
    first, second = queue.effects(job)
    assert second["at"] - first["at"] >= 0.8


def test_a_subscriber_gets_its_event_and_a_pruned_one_is_discarded(queue: TestQueue) -> None:
    event = queue.record(subject="thing/1", data={"n": 1})
    row = queue.conn.execute(
        "insert into weirkeeper.job (kind, args, event_id, priority) values"
        " ('t.event', %s, %s, 2), ('t.event', %s, %s, 2) returning id",
        (
            json.dumps({"event_id": event}), event,
            json.dumps({"event_id": "00000000-0000-0000-0000-000000000000"}),
            "00000000-0000-0000-0000-000000000000",
        ),
    ).fetchall()  # fmt: skip
    queue.start(WEIRKEEPER_CHILDREN="t=1")
    there, gone = (str(r[0]) for r in row)
    expected = {"type": "t.happened", "subject": "thing/1", "data": {"n": 1}}
    assert queue.final(there)["result"] == expected
    last = queue.final(gone)
    assert (last["state"], last["outcome"]) == ("discarded", "discarded")
    assert "was pruned" in last["error"]


def test_the_connection_of_a_child_is_its_own_kept_and_left_clean(queue: TestQueue) -> None:
    queue.start(WEIRKEEPER_CHILDREN="t=1")
    results = [queue.final(queue.enqueue("query"))["result"] for _ in range(2)]
    assert results[0]["backend"] == results[1]["backend"]
    assert results[0]["sockets"] == 2  # its pipe and its connection: none of its parent's


def test_kinds_that_this_process_does_not_know_are_left_in_line(queue: TestQueue) -> None:
    queue.conn.execute(
        "insert into weirkeeper.kind (name, queue, max_attempts, timeout_ms, awaited)"
        " values ('t.unknown', 't', 1, 1000, false)"
    )
    unknown = queue.enqueue("unknown")
    queue.start()
    queue.final(queue.enqueue("ok"))
    assert queue.where(unknown) == ["ready"]


def test_a_queue_keeps_to_its_own(queue: TestQueue) -> None:
    queue.start(queue="u")
    job = queue.enqueue("ok")
    until(lambda: queue.where(job) == ["ready"], 20, "the job is in line")


def test_args_that_python_cannot_read_are_discarded_alone(queue: TestQueue) -> None:
    row = queue.conn.execute(
        "insert into weirkeeper.job (kind, queue, args, priority, max_attempts, timeout_ms, awaited)"
        " values ('t.ok', 't', jsonb_build_object('n', repeat('9', 5000)::numeric), 2, 3, 9000, true)"
        " returning id"
    ).fetchone()
    assert row is not None
    queue.conn.execute(
        "insert into weirkeeper.ready (queue, kind, priority, job_id) values ('t', 't.ok', 2, %s)",
        row,
    )
    queue.start()
    assert queue.final(queue.enqueue("ok"))["outcome"] == "completed"
    assert queue.final(str(row[0]))["outcome"] == "discarded"


def test_check_tells_the_queues_numbers(queue: TestQueue) -> None:
    program = queue.programs.start("workers", "t", "--check", env=queue.env)
    assert program.wait(20) == 0
    told = json.loads(program.text())
    assert told["queue"]["children"] == 4
    assert told["slot"] == "t"
    assert "t.ok" in told["kinds"]


@pytest.mark.parametrize("arguments", [(), ("--check",)])
@pytest.mark.parametrize(
    ("queue_name", "env", "message"),
    [
        ("nowhere", {}, "queue: expected one of"),
        ("q" * 70, {}, "queue: expected one of"),
        ('t"; listen x', {}, "queue: expected one of"),
        ("t", {"WEIRKEEPER_APP": "tests.support.bad_queue_app:app"}, "queue name: expected"),
        ("t", {"WEIRKEEPER_APP": "nowhere.at:all"}, "nowhere.at:all"),
        ("t", {"WEIRKEEPER_APP": "tests.support.bad_apps:no_module"}, "nowhere.handlers"),
        ("t", {"WEIRKEEPER_APP": "tests.support.bad_apps:starts_thread"}, "start no thread"),
        (
            "t",
            {"WEIRKEEPER_APP": "tests.support.bad_apps:too_few"},
            "kind t.event: handler tests.support.app:ok: expected parameters (ctx, args, event);",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_one_line(
    queue: TestQueue,
    queue_name: str,
    env: dict[str, str],
    message: str,
    arguments: tuple[str, ...],
) -> None:
    program = queue.programs.start("workers", queue_name, *arguments, env={**queue.env, **env})
    assert program.wait(20) == 78
    lines = [line for line in program.text().splitlines() if line.startswith("weirkeeper worker:")]
    assert len(lines) == 1
    assert message in lines[0]
