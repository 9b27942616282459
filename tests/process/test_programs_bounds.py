"""Foreign programs and their kinds: what a run may use, and what it depends on being away."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from shared.config.command import Command
from shared.jobs.limits import Limits
from shared.jobs.outages import Outage
from tests.support.program_bench import program_bench
from tests.support.speakers import PYTHON, python
from tests.support.works import claim
from workers.pool.chunk import End
from workers.pool.mixed import Foreign
from workers.verdicts import verdict

WORKER = (
    PYTHON
    + """
held = []
say(type="hello", protocol=1)
for line in sys.stdin:
    job = json.loads(line)["job"]
    args = job["args"]
    if "mib" in args:
        held = bytearray(args["mib"] << 20)
        time.sleep(args.get("seconds", 0))
    if "burn" in args:
        end = time.monotonic() + args["burn"]
        while time.monotonic() < end:
            pass
    told = len([open(os.devnull) for _ in range(args.get("files", 0))])
    say(type="outcome", id=job["id"], outcome="completed", result=told)
"""
)


@pytest.mark.parametrize("lasting", [True, False])
def test_its_jobs_may_use_what_their_kinds_say(short_tmp: Path, lasting: bool):
    command = Command((sys.executable, "-S", "-c", WORKER))
    kinds = {"m": Limits(memory_mib=50), "c": Limits(cpu_seconds=0.5), "f": Limits(open_files=40)}
    named = Foreign(
        {} if lasting else dict.fromkeys((*kinds, "free"), command), command if lasting else None, all=True
    )  # fmt: skip
    with program_bench(short_tmp, named, size=1, allowed=kinds) as bench:

        def run(kind: str, **args: Any) -> End:
            bench.ready()
            return bench.run("", kind=kind, **args)

        assert run("m", mib=20).outcome == "completed"
        beyond = run("m", mib=200, seconds=60)
        assert (beyond.outcome, beyond.cause, beyond.death) == ("crashed", "memory_limit", False)
        assert beyond.evidence["max_rss_mib"] > 50
        beyond = run("c", burn=60)
        assert (beyond.outcome, beyond.cause) == ("timeout", "cpu_limit")
        assert beyond.evidence["cpu_seconds"] >= 0.5
        assert run("c", burn=0.1).outcome == "completed"
        assert run("f", files=10).outcome == "completed"
        assert "Too many open files" in run("f", files=100).evidence["output"]
        assert run("free", files=100, mib=200).outcome == "completed"


def test_what_it_depends_on_may_be_away(short_tmp: Path):
    line = "job = json.loads(sys.stdin.readline())['job']"
    said = "say(type='outcome', id=job['id'], outcome='away', error='no search server')"
    command = Command(tuple(python("say(type='hello', protocol=1)", line, said)))
    with program_bench(short_tmp, Foreign({"k": command}, all=True), size=1) as bench:
        end = bench.run("", kind="k")
    assert (end.outcome, end.error, end.delay) == ("snoozed", "no search server", None)
    claimed = claim(1, kind="k", max_attempts=1)
    put_off = verdict(claimed, end, outage=Outage(delay=60))
    assert (put_off.state, put_off.spent, put_off.cause) == ("pending", False, "outage")
    assert put_off.delay is not None
    assert 60 <= put_off.delay <= 72
    failed = verdict(claimed, end)
    assert (failed.outcome, failed.state, failed.spent) == ("failed", "discarded", True)
