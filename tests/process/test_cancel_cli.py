"""Stepping in from the command line: what a person types, and what a program reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.flow import answer, cli
from tests.support.queue import TestQueue

ENV = {"WEIRKEEPER_APP": "tests.support.app:app"}


@pytest.fixture(name="queue")
def queue_fixture(programs, database_url):
    made = TestQueue(programs, database_url)
    yield made
    made.conn.close()


@pytest.fixture
def ask(programs):
    return lambda *arguments: answer(programs, *arguments, env=ENV)


@pytest.fixture
def say(programs):
    """What a command prints for people, with its exit code."""

    def run(*arguments: str) -> tuple[int, str]:
        program = cli(programs, *arguments, env=ENV)
        code = program.wait(60)
        return code, program.text()

    return run


def test_jobs_are_found_explained_cancelled_and_retried(queue, ask):
    later = datetime.now(UTC) + timedelta(hours=1)
    first = queue.enqueue("ok", tags=("red",), owner_id="me")
    second = queue.enqueue("size", {"text": "x"}, run_at=later)
    queue.conn.execute("update weirkeeper.kind set searchable = '{text}' where name = 't.size'")
    assert [j["id"] for j in ask("jobs", "list", "--tag", "red")] == [first]
    assert [j["id"] for j in ask("jobs", "list", "--of", "me", "--queue", "t")] == [first]
    found = ask("jobs", "list", "--kind", "t.size", "--args", '{"text": "x"}')
    assert [j["id"] for j in found] == [second]
    told = ask("jobs", "explain", second)
    assert (told["where"], told["waits_for"]) == ("scheduled", "time")
    assert ask("jobs", "retry", second) == {"id": second, "state": "pending"}
    assert ask("jobs", "cancel", first) == {"id": first, "state": "cancelled"}
    assert ask("jobs", "cancel-all", "--kind", "t.size") == {"jobs": 1}
    assert ask("jobs", "retry-all", "--all") == {"jobs": 2}
    kinds = {kind["kind"]: kind for kind in ask("jobs", "overview")}
    assert kinds["t.ok"]["counts"]["pending"] == 1
    assert set(kinds["t.die"]["counts"].values()) == {0}
    assert [k["kind"] for k in ask("jobs", "overview", "--kind", "t.ok")] == ["t.ok"]


def test_a_queue_is_paused_and_resumed(queue, ask, say):
    assert ask("pause", "--queue", "t") == {"queue": "t", "kind": None, "paused": True}
    job = queue.enqueue("ok")
    code, text = say("jobs", "explain", job)
    assert code == 0
    assert "queue t has been paused since" in text
    assert "weirkeeper resume --queue t" in text
    _, status = say("status")
    assert "paused: queue t" in status
    assert say("resume", "--queue", "t") == (0, "queue t is not paused any more\n")
    assert "paused" not in say("status")[1]


def test_people_read_words(queue, say):
    job = queue.enqueue("ok", tags=("red",))
    assert say("jobs", "cancel", job) == (0, f"job {job} is cancelled\n")
    assert say("jobs", "retry", job) == (0, f"job {job} is pending\n")
    code, text = say("jobs", "cancel-all", "--tag", "red")
    assert code == 0
    assert "1 jobs so far" in text
    assert say("jobs", "cancel-all", "--tag", "red") == (0, "0 jobs cancelled, or being stopped\n")
    assert "1 jobs cancelled, or being stopped" in text
    assert "red" in say("jobs", "get", job)[1]
    assert "t.ok" in say("jobs", "overview")[1]
    for nobodys in (("--tag", "blue"), ("--kind", ""), ("--before", job)):
        assert say("jobs", "list", *nobodys) == (0, "no jobs that fit\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("jobs", "cancel", "99"), 1, "expected the id of one that is kept; got '99'"),
        (("jobs", "retry", str(2**63)), 1, f"expected the id of one that is kept; got '{2**63}'"),
        (("jobs", "cancel-all"), 1, "expected something that the jobs have in common"),
        (("jobs", "list", "--kind", "t.ok", "--args", "{"), 1, "--args: expected a JSON object"),
        (("jobs", "list", "--kind", "t.ok", "--args", "[]"), 1, "tasks.list: Expected `object"),
        (("jobs", "list", "--args", '{"a": 1}'), 1, "expected a kind beside them"),
        (("jobs", "list", "--created-after", "today"), 1, "expected a moment with a time zone"),
        (("pause",), 2, "one of the arguments --queue --kind is required"),
        (("pause", "--queue", "t", "--kind", "t.ok"), 2, "not allowed with argument"),
        (("pause", "--kind", "no.such"), 1, "kind: expected a declared one; got 'no.such'"),
    ],
)
def test_mistakes_are_told_in_one_line(queue, say, arguments, code, said):
    found, text = say(*arguments)
    assert (found, said in text) == (code, True), text
    assert "Traceback" not in text


def test_periodic_jobs_are_shown_and_run_by_hand(queue, ask, say):
    shown = {one["name"]: one for one in ask("jobs", "periodic")}
    assert shown, "the engine's own are declared with every application"
    name = min(shown)
    started = ask("jobs", "run-periodic", name)["id"]
    assert ask("jobs", "get", started)["kind"] == shown[name]["kind"]
    assert name in say("jobs", "periodic")[1]
    assert say("jobs", "run-periodic", "no.such")[0] == 1
