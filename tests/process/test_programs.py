"""The pool alone, with children that are foreign programs: the open child protocol."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.config.command import Command
from shared.errors import ConfigurationError
from tests.support.processes import alive_with
from tests.support.program_bench import ProgramBench, program_bench
from tests.support.speakers import NODE, ONE_BY_ONE, SHELL, python, script
from tests.support.waiting import until
from workers.pool import programs, respawn
from workers.pool.chunk import End
from workers.pool.mixed import Foreign
from workers.pool.respawn import PoolBroken
from workers.pool.tree import descendants

LASTING = Command((sys.executable, "-S", "-c", ONE_BY_ONE))
Run = Callable[..., End]


@pytest.fixture
def run(short_tmp: Path):
    """Run one job with a command of its kind; return its end."""

    def run(
        argv: list[str], timeout: float = 30, environment: tuple[str, ...] = (), **args: Any
    ) -> End:
        command = Command(tuple(argv), environment)
        with program_bench(short_tmp, Foreign({"k": command}, all=True), size=1) as bench:
            end = bench.run("", timeout, kind="k", **args)
            bench.turn_until(lambda: bench.pool.free == 1, 10, "its program is gone")
            assert descendants(bench.server.pid or 0) == set()
            return end

    return run


@pytest.fixture
def lasting(short_tmp: Path):
    with program_bench(short_tmp, Foreign(command=LASTING, all=True)) as bench:
        bench.ready()
        yield bench


def outcome(**fields: Any) -> str:
    """Take the job, then tell this outcome of it."""
    said = {"type": "outcome", "outcome": "completed", **fields}
    return f"job = json.loads(sys.stdin.readline())['job']; say(**{{'id': job['id'], **{said!r}}})"


HELLO = "say(type='hello', protocol=1)"


def test_a_shell_script_runs_a_job(run: Run, short_tmp: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    end = run([script(short_tmp, SHELL)], word="wäh")
    assert (end.outcome, end.result, end.cause) == ("completed", '"wäh"', None)
    told = {
        (r.getMessage(), r.levelname, r.job, r.kind) for r in caplog.records if r.name == "program"
    }  # type: ignore[attr-defined]
    assert told == {("about to say wäh", "INFO", "1", "k"), ("said wäh", "WARNING", "1", "k")}


def test_what_is_printed_before_the_outcome_is_of_that_job(
    lasting: ProgramBench, short_tmp: Path, caplog: pytest.LogCaptureFixture
):
    """Even when the pool looks only after all was said, and hears the outcome first."""
    caplog.set_level(logging.INFO)
    over = short_tmp / "over"
    key = lasting.give("print", file=str(over))
    until(over.exists, 20, "all was said")
    assert lasting.end(key).outcome == "completed"
    [told] = [record for record in caplog.records if record.getMessage() == "printed"]
    assert told.job == str(key)  # type: ignore[attr-defined]


def test_node_runs_a_job_and_is_stopped(run: Run, short_tmp: Path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node in PATH: the shell script is the other language here")
    program = [node, script(short_tmp, NODE, "speaker.js")]
    assert run(program, word="väärt").result == '"VÄÄRT"'
    end = run(program, 1, word="x", ms=60_000)
    assert (end.outcome, end.evidence["stack"]) == ("timeout", "in the timer")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"result": {"n": 2**70}}, ("completed", None, None, '{"n":1180591620717411303424}')),
        ({}, ("completed", None, None, None)),
        ({"outcome": "snoozed", "delay": 3}, ("snoozed", None, 3.0, None)),
        ({"outcome": "failed", "error": "no\0w", "delay": 9}, ("failed", "no\ufffdw", 9.0, None)),
        ({"outcome": "failed"}, ("failed", "failed without a word why", None, None)),
        ({"outcome": "discarded", "error": "never"}, ("discarded", "never", None, None)),
    ],
)
def test_outcomes_mean_what_a_handler_s_answers_do(run: Run, fields, expected):
    end = run(python(HELLO, outcome(**fields)))
    assert (end.outcome, end.error, end.delay, end.result) == expected
    assert end.cause == ("exception" if end.outcome == "failed" else None)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([HELLO, "raw('hello\\n')"], "expected a line of the child protocol; got a line that is no"),
        ([HELLO, "raw(b'\\xff\\xfe\\n')"], "a line that is no message"),
        ([HELLO, "raw('[' * 200_000 + '\\n')"], "a line that is no message"),
        ([HELLO, "say(type='dance')"], "Invalid value 'dance'"),
        ([HELLO, "say(type='outcome', id='99', outcome='completed')"], "a word about job 99"),
        ([HELLO, "say(type='progress', id='99', n=1)"], "a word about job 99"),
        ([HELLO, "say(type='outcome', outcome='completed')"], "missing required field `id`"),
        ([HELLO, "raw('x' * 300_000)"], "a line of more than 262144 bytes: 'xxxx"),
        ([HELLO, "os.close(3)"], "closed descriptor 3 before an outcome"),
        ([HELLO, "sys.exit()"], "ended (exit code 0) without an outcome"),
        ([HELLO, outcome(outcome="sold")], "Invalid enum value 'sold'"),
        ([HELLO, outcome(outcome="stopped")], "was not asked to stop"),
        ([HELLO, outcome(outcome="snoozed")], "expected a delay of 0 or more seconds"),
        ([HELLO, outcome(outcome="snoozed", delay=-1)], "expected a delay of 0 or more seconds"),
        ([HELLO, outcome(result="x" * 40_000)], "expected at most 32768 bytes of JSON"),
        ([HELLO, outcome(result="a\0b")], "expected text without NUL"),
        ([HELLO, "say(type='progress', id='1', n=-1)"], "progress -1.0 of None; expected 0"),
        ([HELLO, HELLO], "a second hello"),
        (["say(type='outcome', id='1', outcome='completed')"], "a message before hello"),
        (["say(type='hello', protocol=2)"], "protocol 2; expected 1"),
        (["say(type='hello', refused='no licence')"], "a refusal: no licence"),
    ],
)  # fmt: skip
def test_what_breaks_the_protocol_is_a_failed_attempt_that_says_so(run: Run, lines, said):
    end = run(python(*lines, "time.sleep(600)"))
    assert (end.outcome, end.cause) == ("failed", "protocol")
    assert said in (end.error or "")
    assert (end.error or "").startswith(f"{sys.executable}: ")


def test_no_hello_is_a_failed_attempt(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "BOOT", 0.5)
    end = run(python("print('still here', flush=True)", "time.sleep(600)"))
    assert (end.outcome, end.cause) == ("failed", "protocol")
    assert (end.error or "").endswith("said no hello within 0.5 s")
    assert end.evidence["output"] == "still here\n"


@pytest.mark.parametrize(
    "argv", [["/nowhere/at/all"], ["no-such-program-anywhere"], ["/etc/passwd"]]
)
def test_what_cannot_be_executed_is_a_failed_attempt(run: Run, argv: list[str]):
    end = run(argv)
    assert (end.outcome, end.cause) == ("failed", "protocol")
    assert f"a refusal: {argv[0]} cannot be executed: [Errno" in (end.error or "")


def test_a_program_that_dies_leaves_its_signal_or_code_and_its_last_output(run: Run):
    end = run(python("print('boom', file=sys.stderr)", "os.kill(os.getpid(), signal.SIGSEGV)"))
    assert (end.outcome, end.cause, end.evidence["signal"]) == ("crashed", "SIGSEGV", "SIGSEGV")
    end = run(python("raise RuntimeError('in the import')"))
    assert (end.outcome, end.cause, end.evidence["exit_code"]) == ("crashed", "exit", 1)
    assert "RuntimeError: in the import" in end.evidence["output"]


def test_a_timeout_asks_by_a_line_and_a_signal(run: Run):
    end = run(
        python(
            "signal.signal(signal.SIGTERM, lambda *_: None)",
            HELLO,
            "job = json.loads(sys.stdin.readline())['job']",
            "stop = json.loads(sys.stdin.readline())",
            "assert stop == {'type': 'stop', 'id': job['id'], 'reason': 'timeout'}, stop",
            "signal.sigtimedwait({signal.SIGTERM}, 0)",
            "say(type='outcome', id=job['id'], outcome='stopped', stack='at the sofa')",
        ),
        0.3,
    )
    assert (end.outcome, end.cause, end.evidence["stack"]) == ("timeout", "timeout", "at the sofa")
    assert end.evidence["max_rss_mib"] > 1


def test_one_that_does_not_stop_is_killed_with_all_that_it_started(run: Run):
    mark = f"{700 + os.getpid() % 1000}.{time.monotonic_ns() % 10**6}"
    end = run(
        python(
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
            f"for alone in (0, 1): subprocess.Popen(['sleep', '{mark}'], start_new_session=alone)",
            HELLO,
            "time.sleep(600)",
        ),
        0.3,
    )
    assert end.outcome == "timeout"
    assert end.seconds >= 0.8
    assert alive_with(mark) == []


def test_what_it_is_given_is_what_was_promised(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("SHOP_MODE", "busy")
    told = (
        "seen = {'fds': sorted(map(int, set(os.listdir('/proc/self/fd')))), 'env': dict(os.environ)}",
        "seen['leader'] = os.getsid(0) == os.getpid()",
        "seen['masked'] = list(signal.pthread_sigmask(0, ()))",
        "seen['ignored'] = [int(n) for n in signal.valid_signals() if signal.getsignal(n) == 1]",
        "job = json.loads(sys.stdin.readline())['job']",
        "say(type='outcome', id=job['id'], outcome='completed', result=seen)",
    )
    end = run(python(HELLO, *told), environment=("SHOP_MODE", "SHOP_KEY=a=b", "SHOP_NONE"))
    seen = json.loads(end.result or "")
    assert len(seen["fds"]) == 5  # the last one is that of the listing
    assert seen["fds"][:4] == [0, 1, 2, 3]
    assert (seen["env"]["SHOP_MODE"], seen["env"]["SHOP_KEY"]) == ("busy", "a=b")
    assert not {"DATABASE_URL", "SHOP_NONE", "PYTEST_CURRENT_TEST"} & set(seen["env"])
    assert (seen["leader"], seen["masked"]) == (True, [])
    assert set(seen["ignored"]) <= {signal.SIGPIPE, signal.SIGXFSZ}  # Python itself does that


WAITING = """
def waiting():
    import fcntl, termios
    return int.from_bytes(fcntl.ioctl(0, termios.FIONREAD, bytes(4)), sys.byteorder)
"""


def test_args_longer_than_a_pipe_reach_a_program_that_is_in_no_hurry(run: Run):
    size = "say(type='outcome', id=job['id'], outcome='completed', result=len(job['args']['text']))"
    # Reads only once its input is full, so that the rest of the job has to wait for it.
    full = "while waiting() < 32_768: time.sleep(0.01)"
    lines = (WAITING, full, "job = json.loads(sys.stdin.readline())['job']", size)
    assert run(python(HELLO, *lines), text="x" * 250_000).result == "250000"


def test_one_that_never_reads_is_timed_all_the_same(run: Run):
    assert run(python(HELLO, "time.sleep(600)"), 0.2, text="x" * 250_000).outcome == "timeout"


def test_a_flood_of_output_delays_no_deadline(run: Run):
    flood = "while True: os.write(1, b'x\\n' * 4000)"
    end = run(python(HELLO, flood), 0.3)
    assert end.outcome == "timeout"
    assert end.seconds < 15  # never, if the flood were read to its end
    assert set(end.evidence["output"].split()) == {"x"}


@pytest.mark.parametrize("line", ["type='log', text='x'", "type='progress', id='1', n=1"])
def test_a_flood_of_lines_delays_no_deadline(run: Run, line: str):
    end = run(
        python(
            HELLO, f"flood = (json.dumps(dict({line})) + '\\n') * 200", "while True: raw(flood)"
        ),
        0.3,
    )
    assert end.outcome == "timeout"
    assert end.seconds < 15


def test_lasting_programs_run_one_job_after_another(lasting: ProgramBench):
    first = lasting.values([lasting.give("pid"), lasting.give("pid")])
    lasting.ready()
    assert len(set(first)) == 2
    assert lasting.values([lasting.give("pid")])[0] in first
    assert lasting.run("size", text="x" * 250_000).result == "250000"


def test_no_more_jobs_than_places(lasting: ProgramBench):
    lasting.give("sleep", seconds=60)
    lasting.give("sleep", seconds=60)
    with pytest.raises(IndexError):
        lasting.give("pid")


@pytest.mark.parametrize(
    ("do", "args", "cause"),
    [("die", {"signal": 9}, "SIGKILL"), ("exit", {"code": 3}, "exit"), ("exit", {"code": 0}, "protocol")],
)  # fmt: skip
def test_a_dead_program_costs_its_job_alone_and_is_replaced(lasting: ProgramBench, do, args, cause):
    sibling = lasting.give("sleep", seconds=0.5)
    assert lasting.end(lasting.give(do, **args)).cause == cause
    assert lasting.end(sibling).outcome == "completed"
    lasting.ready()
    assert lasting.run("pid").outcome == "completed"


def test_a_cancelled_job_is_stopped_and_its_program_replaced(lasting: ProgramBench):
    key = lasting.give("sleep", seconds=60)
    lasting.pool.turn(0)
    lasting.pool.stop(key, "cancelled")
    assert lasting.end(key).outcome == "cancelled"
    lasting.ready()


def test_the_death_of_the_fork_server_costs_no_attempt(lasting: ProgramBench):
    keys = [lasting.give("sleep", seconds=60), lasting.give("sleep", seconds=60)]
    lasting.pool.kill_now()
    assert [lasting.end(key).outcome for key in keys] == ["lost", "lost"]
    lasting.ready()
    assert lasting.run("pid").outcome == "completed"


def test_an_interrupt_asks_the_busy_ones_and_sends_the_free_ones_away(lasting: ProgramBench):
    key = lasting.give("sleep", seconds=60)
    lasting.pool.interrupt()
    assert lasting.end(key).outcome == "interrupted"
    lasting.turn_until(lambda: not len(lasting.pool._programs), 5, "all are gone")


@pytest.mark.parametrize(
    ("argv", "said"),
    [(["/nowhere/at/all"], "cannot be executed"), (python("say(type='hello', refused='x')"), "refuses: x")],
)  # fmt: skip
def test_a_queue_whose_command_refuses_does_not_start(short_tmp: Path, argv, said):
    with (
        program_bench(short_tmp, Foreign(command=Command(tuple(argv)), all=True)) as bench,
        pytest.raises(ConfigurationError, match=said),
    ):
        bench.turn_until(lambda: False, 10, "a refusal")


def test_a_command_that_never_comes_up_breaks_the_pool(short_tmp: Path, monkeypatch):
    monkeypatch.setattr(respawn, "MOST_BOOT_FAILURES", 3)
    command = Command(tuple(python("sys.exit(1)")))
    with (
        program_bench(short_tmp, Foreign(command=command, all=True)) as bench,
        pytest.raises(PoolBroken, match="3 children in a row died"),
    ):
        bench.turn_until(lambda: False, 20, "the pool to break")


def test_a_program_that_talks_nonsense_while_idle_is_replaced_slowly(short_tmp: Path):
    command = Command(tuple(python(HELLO, "raw('no\\n')", "time.sleep(600)")))
    with program_bench(short_tmp, Foreign(command=command, all=True), size=1) as bench:
        began = time.monotonic()
        bench.turn_until(lambda: bench.pool._programs._started == 4, 20, "a fourth program")
        assert time.monotonic() - began > 0.2


def test_a_job_of_a_command_takes_the_place_of_a_child_that_waits(short_tmp: Path):
    commands = {"k": LASTING}
    with program_bench(short_tmp, Foreign(commands)) as bench:
        bench.ready()
        slow = bench.give("sleep", kind="k", seconds=60)
        assert bench.pool.free == 1
        assert bench.run("pid").result in map(str, bench.pids())
        bench.give("sleep", kind="ours", seconds=60)
        with pytest.raises(IndexError):
            bench.give("pid", kind="k")
        bench.pool.stop(slow, "cancelled")
        assert bench.end(slow).outcome == "cancelled"
        bench.turn_until(lambda: bench.pool.free == 1, 5, "its place is free")
