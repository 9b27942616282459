"""The hooks of docs/hooks.md do what the page says, as they stand there, in a real child.

OpenTelemetry is no dependency of ours: tests/support/tracer_stand_in takes its place, and the test
asks for nothing that the real one does not print as well.
"""

from __future__ import annotations

import re

from tests.support.processes import ROOT
from tests.support.queue import TestQueue, queue
from tests.support.waiting import until

__all__ = ["queue"]

[PAGE] = re.findall(
    r"^```python\n(.*?)^```",
    (ROOT / "docs/hooks.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
APP = """
from dataclasses import replace
from tests.support.app import app as before

app = replace(before, hooks=("shop.watching:spans", "shop.watching:errors"))
"""
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_every_run_has_a_span_and_the_last_failure_is_told(queue: TestQueue) -> None:
    folder = queue.programs.home / "code"
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "watching.py").write_text(PAGE)
    (folder / "shop" / "background.py").write_text(APP)
    stand_in = ROOT / "tests" / "support" / "tracer_stand_in"
    program = queue.start(
        WEIRKEEPER_APP="shop.background:app", PYTHONPATH=f"{folder}:{stand_in}:{ROOT}"
    )
    good = queue.enqueue("ok", trace=TRACE)
    bad = queue.enqueue("fail", trace=TRACE)
    assert (queue.final(good)["state"], queue.final(bad)["state"]) == ("completed", "discarded")

    until(lambda: program.text().count('"job.outcome"') == 4, 20, "four spans are printed")
    said = program.text()
    assert said.count('"0x4bf92f3577b34da6a3ce929d0e0e4736"') >= 4
    assert said.count('"0x00f067aa0ba902b7"') >= 4  # the parent
    assert said.count('"job t.fail"') == 3
    assert said.count('"job.outcome": "failed"') == 3
    assert said.count('"job.outcome": "completed"') == 1
    [given_up] = [line for line in said.splitlines() if "giving up" in line]
    assert "ValueError" in given_up
    assert f'"job": "{bad}"' in given_up
