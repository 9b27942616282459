"""What a child is given of its parent's environment, and what runs of a kind may use."""

from __future__ import annotations

import json

from shared.services.exit_codes import CONFIGURATION
from tests.support.context_app import APP
from tests.support.queue import TestQueue, alive, queue
from tests.support.waiting import until

__all__ = ["queue"]

SECRETS = {"AWS_SECRET_ACCESS_KEY": "x", "STRIPE_KEY": "y", "WEIRKEEPER_SECRET": "z" * 40}


def test_a_child_gets_what_it_needs_and_what_was_declared_and_no_other_secret(
    queue: TestQueue,
) -> None:
    queue.start(WEIRKEEPER_APP=APP, TEST_DECLARED="yes", TZ="UTC", **SECRETS)
    seen = queue.final(queue.enqueue("surroundings"))["result"]
    given = seen["variables"]
    assert (given["TEST_DECLARED"], given["TZ"]) == ("yes", "UTC")
    assert {"PATH", "DATABASE_URL", "WEIRKEEPER_HOME", "WEIRKEEPER_EPOCH"} <= set(given)
    assert not set(SECRETS) & set(given)
    assert not set(SECRETS) & set(seen["begun"]), "the kernel still shows them"
    assert not set(SECRETS) & set(seen["program"]), "programs of handlers get them"
    assert seen["no_new_privileges"]


def test_a_kind_may_be_kept_from_every_database(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_APP=APP, TEST_DECLARED="yes", TEST_SHOP=queue.url)
    jobs = [queue.enqueue("without_database") for _ in range(2)]
    seen = [queue.final(job)["result"] for job in jobs]
    for one in seen:
        told = json.dumps(one["variables"]) + " ".join(one["begun"] + one["program"])
        assert one["variables"]["TEST_DECLARED"] == "yes"
        assert not {"DATABASE_URL", "WEIRKEEPER_DIRECT_URL", "TEST_SHOP"} & set(one["variables"])
        assert queue.url not in told
        assert "DATABASE_URL" not in told
        assert not [held for held in one["held"] if "socket" in held]
        assert one["no_new_privileges"]
        assert "database=False" in one["tries"]["context"]
        assert "found" not in one["tries"].values()
    pids = {one["pid"] for one in seen}
    assert len(pids) == 2, "each has a child of its own"
    until(lambda: not any(map(alive, pids)), 5, "that ends after it")
    assert "looked around" in program.text()
    assert queue.effects(jobs[0], "hook")[0]["outcome"] == "completed"

    # It is timed, limited and put off as any other.
    stopped = queue.final(queue.enqueue("block_without_database"))
    assert stopped["outcome"] == "timeout"
    assert "deaf" in json.dumps(stopped["evidence"])
    beyond = queue.final(queue.enqueue("hog_without_database", {"mib": 400}))
    assert (beyond["outcome"], beyond["error"]) == ("failed", "MemoryError")
    away = queue.enqueue("miss_without_database")
    until(lambda: queue.outcomes(away) == ["snoozed"], 10, "what it depends on is away")
    assert queue.attempts(away)[0]["error"] == "LookupError: the search server is away"


def test_a_queue_may_let_its_programs_gain_rights(queue: TestQueue) -> None:
    queue.start(queue="u", WEIRKEEPER_APP=APP)
    assert not queue.final(queue.enqueue("surroundings_of_u"))["result"]["no_new_privileges"]


def test_a_module_that_misses_a_variable_is_told_how_to_declare_it(queue: TestQueue) -> None:
    folder = queue.programs.home / "code"
    folder.mkdir()
    (folder / "needy.py").write_text("import os\nKEY = os.environ['SHOP_KEY']\nok = print\n")
    (folder / "shop.py").write_text(
        "from weirkeeper import App, Kind, Queue\n"
        "app = App(include_site=False, queues=(Queue('t'),),"
        " kinds=(Kind('t.ok', 't', 'needy:ok'),))\n"
    )
    program = queue.start(
        ready=False, WEIRKEEPER_APP="shop:app", SHOP_KEY="k", PYTHONPATH=str(folder)
    )
    assert program.wait(30) == CONFIGURATION
    assert "declare it: App(environment=('SHOP_KEY',))" in program.text()


def test_a_run_may_use_what_its_kind_says_and_no_more(queue: TestQueue) -> None:
    queue.start(queue="u", WEIRKEEPER_APP=APP)

    def run(kind: str, **args: object) -> dict[str, object]:
        return queue.final(queue.enqueue(kind, args), 30)

    # Memory: the handler is told, and its child lives on for others.
    assert run("hog", mib=50)["result"] == 50
    beyond = run("hog", mib=400)
    assert (beyond["outcome"], beyond["error"]) == ("failed", "MemoryError")
    assert run("hog_freely", mib=400)["result"] == 400

    # Open files.
    assert run("open_many", files=20)["result"] == 20
    beyond = run("open_many", files=200)
    assert (beyond["outcome"], "Too many open files" in str(beyond["error"])) == ("failed", True)
    assert run("open_freely", files=200)["result"] == 200

    # CPU time, however long the job may take by the clock.
    assert run("burn", seconds=0.2)["outcome"] == "completed"
    beyond = run("burn", seconds=60)
    assert (beyond["outcome"], beyond["cause"]) == ("timeout", "cpu_limit")
    assert beyond["evidence"]["cpu_seconds"] >= 1  # type: ignore[index]
    pids = {entry["pid"] for entry in _effects(queue)}
    assert len(pids) == 1, "only the one that was stopped had its child replaced"


def _effects(queue: TestQueue) -> list[dict[str, object]]:
    rows = queue.conn.execute("select id::text from weirkeeper.job where kind <> 't.burn'")
    return [entry for row in rows.fetchall() for entry in queue.effects(row[0])]
