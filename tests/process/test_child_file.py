"""weirkeeper/child.py: an application's own interpreter, with packages called `shared` and `metrics`."""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.app import load_app
from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues.catalog import declare
from tests.support.processes import ROOT, Programs, alive_with
from tests.support.queue import TestQueue
from tests.support.waiting import pause, until
from workers.pool.tree import descendants

FILE = ROOT / "weirkeeper/child.py"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an application that has our one file and nothing else of ours."""
    home = tmp_path_factory.mktemp("shop")
    venv.create(home, with_pip=False, symlinks=True)
    [packages] = home.glob("lib/python*/site-packages")
    for name in ("shared", "metrics"):
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(f"WHOSE = 'the shop, {name}'\n")
    (packages / "weirkeeper").mkdir()
    shutil.copy(FILE, packages / "weirkeeper")
    (packages / "shop").mkdir()
    shutil.copy(ROOT / "tests/support/shop_handlers.py", packages / "shop/handlers.py")
    return str(home / "bin/python")


class Shop(TestQueue):
    """A queue process whose children are the shop's."""

    def __init__(self, programs: Programs, url: str, python: str) -> None:
        super().__init__(programs, url)
        self.env |= {"SHOP_PYTHON": python, "SHOP_EFFECTS": str(self.effects_path)}

    def use(self, app: str) -> None:
        """Run this one of the shop's apps."""
        self.env["WEIRKEEPER_APP"] = f"tests.support.shop_app:{app}"
        declare(self.conn, load_app(self.env["WEIRKEEPER_APP"]))

    def pids(self) -> set[int]:
        """Of programs that have begun jobs."""
        if not self.effects_path.exists():
            return set()
        lines = self.effects_path.read_text().splitlines()
        return {json.loads(line)["pid"] for line in lines}

    def put(self, kind: str, args: dict[str, Any] | None = None, **opts: Any) -> str:
        return PostgresJobs(self.conn).enqueue(kind, args or {}, EnqueueOpts(**opts))


@pytest.fixture
def none_left(python: str) -> Iterator[None]:
    """Asked for first, so looked at last: when the queue process has ended."""
    yield
    until(lambda: not alive_with(python), 5, "no program of the shop is left")


@pytest.fixture
def shop(none_left: None, programs: Programs, database_url: str, python: str) -> Iterator[Shop]:
    made = Shop(programs, database_url, python)
    made.use("own")
    yield made
    made.conn.close()


@pytest.mark.parametrize("app", ["own", "lasting"])
def test_its_handlers_run_among_its_own_packages(shop: Shop, python: str, app: str) -> None:
    shop.use(app)
    program = shop.start(queue="shop")
    job = shop.put("shop.look", {"at": "é", "big": 2**70})
    last = shop.final(job)
    assert last["error"] is None
    told = last["result"]
    assert told["args"] == {"at": "é", "big": 2**70}
    assert told["whose"] == ["the shop, shared", "the shop, metrics"]
    assert told["prefix"] == str(Path(python).parents[1])
    assert told["ours"] == ["weirkeeper", "weirkeeper.child"]
    assert told["attempt"] == [1, 3, "shop.look", True]
    assert (told["stdin"], told["event"]) == ("", None)
    assert len(told["fds"]) == 4  # what it starts: the three standard ones, and that of the listing
    lines = {(r["message"], r["level"]) for r in program.records() if r.get("job") == job}
    assert {("looking around", "info"), ("at é", "warning")} <= lines


@pytest.mark.slow
def test_it_is_told_which_command_runs_a_job(shop: Shop, python: str) -> None:
    shop.start(queue="shop")
    job = shop.put("shop.sleep")
    shop.begun(job)
    command = [python, "-m", "weirkeeper.child", "shop.handlers"]
    inspector = PostgresInspector(shop.conn)
    assert list(inspector.get(job).command) == command
    explained = until(
        lambda: (e := inspector.explain(job)) and "has been running" in e.sentence and e,
        5,
        "marked",
    )
    assert (
        f", in command {python} -m weirkeeper.child shop.handlers, attempt 1" in explained.sentence
    )
    assert explained.facts["command"] == command
    told = shop.programs.execute([sys.executable, "-P", "-m", "panel.cli.main", "jobs", "get", job])
    assert told.wait(30) == 0, told.text()
    assert f"{python} -m weirkeeper.child shop.handlers" in told.text()


@pytest.mark.parametrize("app", ["own", "lasting"])
def test_answers_decide(shop: Shop, app: str) -> None:
    shop.use(app)
    shop.start(queue="shop")
    expected = {
        "snooze": (["snoozed", "completed"], None),
        "discard": (["discarded"], "no\ufffdw"),
        "retry": (["failed", "completed"], "later"),
        "raise": (["failed", "completed"], "KeyError: 'missing'"),
        "exit": (["failed", "completed"], "SystemExit: 3"),
        "nonsense": (["failed", "completed"], "None, Completed, Snooze, Discard, Retry or Away"),
        "away": (["failed", "completed"], "the mail server"),
        "nan": (["failed", "completed"], "not JSON compliant"),
        "huge": (["failed", "completed"], "expected at most 32768 bytes of JSON; got 40002"),
        "surrogate": (["failed", "completed"], "?"),
    }
    jobs = {word: shop.put("shop.answer", {"answer": word}) for word in expected}
    for word, job in jobs.items():
        shop.final(job, 60)
        outcomes, error = expected[word]
        assert shop.outcomes(job) == outcomes, word
        assert error is None or error in shop.attempts(job)[0]["error"], word
    assert 'return {"missing"' not in str(shop.attempts(jobs["raise"])[0]["evidence"])
    assert "in answer" in shop.attempts(jobs["raise"])[0]["evidence"]["stack"]
    assert shop.final(shop.put("shop.later"))["result"] == "later"
    unknown = shop.final(shop.put("shop.unknown"), 60)
    assert (unknown["state"], unknown["cause"]) == ("discarded", "exception")
    assert "kind shop.unknown: expected one of shop.answer, shop.later, " in unknown["error"]


def test_a_timeout_is_raised_in_the_handler_which_cleans_up(shop: Shop) -> None:
    shop.start(queue="shop")
    job = shop.put("shop.sleep", timeout=1.5, max_attempts=1)
    last = shop.final(job, 30)
    assert (last["outcome"], last["cause"]) == ("timeout", "timeout")
    assert "time.sleep" in last["evidence"]["stack"]
    assert "in sleep" in last["evidence"]["output"]  # its stacks, written on the signal it told
    [cleaned] = shop.effects(job, "cleaned")
    assert cleaned["cancelled"]
    assert shop.effects(job, "end") == []


def test_kinds_with_and_without_a_command_share_a_queue(shop: Shop) -> None:
    program = shop.start(queue="shop", WEIRKEEPER_DRAIN_SECONDS="0")
    slow = shop.put("shop.sleep")
    shop.begun(slow)
    assert shop.final(shop.put("t.ours"))["outcome"] == "completed"
    gone = shop.final(shop.put("t.gone"))
    assert (gone["outcome"], gone["cause"]) == ("failed", "protocol")
    assert "/nowhere/at/all cannot be executed: [Errno 2]" in gone["error"]
    assert program.terminate() == 0


@pytest.mark.parametrize("app", ["own", "lasting"])
def test_a_drain_interrupts_and_the_job_goes_on_elsewhere(shop: Shop, app: str) -> None:
    shop.use(app)
    program = shop.start(queue="shop", WEIRKEEPER_DRAIN_SECONDS="0.5")
    job = shop.put("shop.sleep", {"seconds": 3})
    shop.begun(job)
    assert program.terminate() == 0
    assert shop.where(job) == ["ready"]
    [interrupted] = shop.attempts(job)
    assert (interrupted["outcome"], interrupted["attempt"]) == ("interrupted", 0)
    assert len(shop.effects(job, "cleaned")) == 1
    shop.start(queue="shop")
    last = shop.final(job, 30)
    assert (last["outcome"], last["attempt"], last["run"]) == ("completed", 1, 2)


def test_a_drain_waits_for_one_that_is_nearly_done(shop: Shop) -> None:
    program = shop.start(queue="shop")
    job = shop.put("shop.sleep", {"seconds": 1})
    shop.begun(job)
    assert program.terminate() == 0
    assert shop.outcomes(job) == ["completed"]


@pytest.mark.parametrize("app", ["own", "lasting"])
def test_a_cancel_stops_it(shop: Shop, app: str) -> None:
    shop.use(app)
    shop.start(queue="shop")
    job = shop.put("shop.sleep")
    shop.begun(job)
    PostgresInspector(shop.conn).cancel(job)
    assert shop.final(job)["state"] == "cancelled"
    assert len(shop.effects(job, "cleaned")) == 1


@pytest.mark.slow
def test_programs_die_with_their_queue_process(shop: Shop, python: str) -> None:
    program = shop.start(queue="shop")
    job = shop.put("shop.sleep")
    pid = shop.begun(job)["pid"]
    assert pid in descendants(program.pid)
    program.send(signal.SIGKILL)
    program.wait(10)
    until(lambda: not alive_with(python), 2, "the program is gone")
    shop.start(queue="shop")
    shop.begun(job, 2)
    assert shop.outcomes(job) == ["rescued"]


@pytest.mark.slow
def test_100_jobs_with_random_kills_none_lost_none_twice_without_cause(shop: Shop) -> None:
    shop.use("lasting")
    program = shop.start(queue="shop")
    jobs = [shop.put("shop.sleep", {"seconds": 0.1}, max_attempts=50) for _ in range(100)]
    chance = random.Random(7)

    def left() -> int:
        row = shop.conn.execute(
            "select count(distinct job_id) from weirkeeper.attempt where state = 'completed'"
        ).fetchone()
        return 100 - (row[0] if row else 0)

    killed, before = 0, 101
    while now := left():
        assert program.running(), program.text()
        # Not one that boots: that would be a command that cannot be started. And not five without a
        # success in between: that would put the kind into quarantine.
        victims = sorted(shop.pids() & descendants(program.pid))
        if victims and killed < 30 and now < before:
            os.kill(chance.choice(victims), signal.SIGKILL)
            killed, before = killed + 1, now
        pause(0.05, "the next kill")
    assert killed >= 5
    for job in jobs:
        outcomes = shop.outcomes(job)
        assert outcomes == ["crashed"] * (len(outcomes) - 1) + ["completed"]
        assert len(shop.effects(job)) <= len(outcomes)
        assert len(shop.effects(job, "end")) >= 1
        ended = [e["run"] for e in shop.effects(job, "end")]
        assert len(ended) == len(set(ended))
    assert shop.count("running") == shop.count("ready") == shop.count("scheduled") == 0


@pytest.mark.parametrize(
    ("app", "code", "said"),
    [
        ("own", 78, "kind shop.look: command: expected a program that may be executed, by its path or in PATH "),
        ("lasting", 78, "queue shop: command: expected a program that may be executed"),
        ("unset", 78, "queue shop: environment: expected variables that are set where"),
        ("whole", 0, '"queue shop": {"argv": ["sh", "-c", "exit"], "environment": ["PATH", "SHOP_KEY"]}'),
    ],
)  # fmt: skip
def test_a_check_refuses_a_command_that_is_not_there(
    shop: Shop, app: str, code: int, said: str
) -> None:
    shop.env |= {
        "WEIRKEEPER_APP": f"tests.support.shop_app:{app}",
        "SHOP_PYTHON": "/nowhere/python",
    }
    program = shop.programs.start("workers", "shop", "--check", env=shop.env)
    assert program.wait(30) == code
    text = program.text() if code else json.dumps(json.loads(program.text())["commands"])
    assert said in text
    assert "secret" not in program.text()


def test_a_queue_whose_command_is_not_there_says_so_and_ends(shop: Shop) -> None:
    shop.use("lasting")
    program = shop.start(queue="shop", ready=False, SHOP_PYTHON="/nowhere/python")
    assert program.wait(30) == 78
    assert "the command of the queue refuses: /nowhere/python cannot be executed" in program.text()


def test_a_module_that_cannot_be_run_refuses(python: str, tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(
        "from weirkeeper.child import handles\n"
        "@handles('a')\ndef one(ctx, args): ...\n@handles('a')\ndef two(ctx, args): ...\n"
    )
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "few.py").write_text("HANDLERS = {'a': lambda ctx: None}\n")
    (tmp_path / "ends.py").write_text("raise SystemExit('enough')\n")
    for module, said in (
        ("twice", "LookupError: kind a: expected one handler; got two"),
        ("none", "got none in none"),
        ("few", "kind a: expected a handler (ctx, args); got too many positional arguments"),
        ("ends", "SystemExit: enough"),
        ("nowhere", "No module named 'nowhere'"),
    ):
        hello = _say(python, module, cwd=tmp_path)
        assert (hello["type"], hello["protocol"]) == ("hello", 1)
        assert said in hello["refused"]


def _say(python: str, module: str, cwd: Path) -> dict[str, Any]:
    read, write = os.pipe()
    with os.fdopen(read) as answers:
        subprocess.run(
            [
                sys.executable, "-c",
                f"import os, sys; os.dup2({write}, 3); os.execv(sys.argv[1], sys.argv[1:])",
                python, "-m", "weirkeeper.child", module,
            ],
            cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False, pass_fds=[write],
        )  # fmt: skip
        os.close(write)
        return json.loads(answers.readline())


def test_by_hand_it_says_how_it_is_used(python: str) -> None:
    done = subprocess.run(
        [python, str(FILE), "shop.handlers"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("usage: python -m weirkeeper.child MODULE...")


@pytest.mark.parametrize("file", ["weirkeeper/child.py", "weirkeeper/__init__.py"])
def test_it_is_python_3_8_and_imports_nothing_but_the_standard_library(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text("utf-8"), feature_version=(3, 8))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and file.endswith("child.py"):
            names = (
                [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            )
            assert {str(name).partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_with_all_of_weirkeeper_there_nothing_else_of_it_is_imported() -> None:
    code = (
        "import runpy, sys\nsys.argv[:] = ['x']\n"
        "try: runpy.run_module('weirkeeper.child', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print(sorted(n for n in sys.modules if n.split('.')[0] in ('shared', 'weirkeeper')))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )  # fmt: skip
    assert done.stdout.strip() == "['weirkeeper']"
