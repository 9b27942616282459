"""Comparisons with rivals: what is judged, how moments are kept, how a rival is got and heard."""

from __future__ import annotations

import array
import json
import sys
import time

import pytest

from bench.held_snapshot import last_to_first
from bench.latency import _result as latency_result
from bench.peers import install
from bench.peers.dialog import Dialog
from bench.peers.lineup import OURS
from bench.support.application import Calls
from bench.support.contestant import moments
from bench.support.ours import _count
from bench.support.report import Result, finish

ECHO = """
import json, sys
for line in sys.stdin:
    given = json.loads(line)
    if given["command"] == "die":
        sys.exit("out of order")
    print(json.dumps(given), flush=True)
"""


def test_without_the_rival_a_ratio_is_not_judged(capsys):
    alone = Result("x", 100.0, 1.3, "higher", relative=True)
    assert alone.ok is None
    assert finish(("what", "n"), [("one", 1)], alone) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["rival"], last["ok"]) == (None, None)


@pytest.mark.parametrize(
    ("own", "other", "ok"),
    [(1.4, 2.6, True), (1.4, 2.4, False), (1.2, 2.6, False), (1.4, None, None), (1.2, None, False)],
)
def test_every_target_counts(own, other, ok):
    second = Result("y", other or 1.0, 2.5, "higher", 1.0 if other else None, relative=True)
    result = Result("x", own, 1.3, "higher", 1.0, relative=True, also=(second,))
    assert result.ok is ok
    assert [r["name"] for r in json.loads(result.line())["also"]] == ["y"]


def test_calls_of_a_child_are_read_while_it_adds_more(tmp_path):
    calls = Calls(tmp_path, 5)
    [path] = tmp_path.iterdir()
    assert _count(path) == 0
    for moment in (30, 10, 20):
        calls.add(moment)
    assert _count(path) == 3
    assert moments(path, 8) == [0, 0, 10, 20, 30]


def test_moments_leave_out_one_that_is_half_written(tmp_path):
    assert moments(tmp_path / "none") == []
    path = tmp_path / "stamps"
    path.write_bytes(array.array("q", [7, 3]).tobytes() + b"\1\2")
    assert moments(path) == [3, 7]


def test_last_third_against_first():
    even = list(range(0, 900, 10))
    assert last_to_first(even) == 1.0
    slower = [*range(0, 600, 10), *range(600, 1200, 20)]
    assert last_to_first(slower) == pytest.approx(0.5, abs=0.02)


def test_latency_is_held_against_bounds_and_the_best_rival():
    starts = {OURS: [1.0] * 99 + [4.0], "a": [2.0] * 100, "b": [0.5] * 100}
    judged = latency_result(starts, [11.0] * 100)
    _, best, seen = judged.also
    assert (judged.ours, best.rival, best.ratio, best.ok) == (1.0, 0.5, 2.0, False)
    assert seen.ok
    del starts["a"], starts["b"]
    assert latency_result(starts, [11.0] * 100).ok is None


def test_a_rival_is_installed_once_and_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIRKEEPER_HOME", str(tmp_path))
    wanted = tmp_path / "list"
    wanted.write_text("a==1")
    made = []

    def make(into):
        made.append(into)
        (into / "program").write_text("")

    first = install._kept("a", [wanted], make)
    assert install._kept("a", [wanted], make) == first
    assert (first / "program").exists()
    assert len(made) == 1
    wanted.write_text("a==2")
    assert install._kept("a", [wanted], make) != first
    wanted.write_text("a==3")
    with pytest.raises(install.Unavailable, match="failed: it says so"):
        install._kept("a", [wanted], _fails)
    assert len(list((tmp_path / "bench").iterdir())) == 2


def _fails(into):
    install._run([sys.executable, "-c", "raise SystemExit('it says so')"], into)


def test_a_program_that_is_not_there_is_no_error_of_ours(tmp_path):
    with pytest.raises(install.Unavailable, match="no-such-program"):
        install._run(["no-such-program"], tmp_path)
    with pytest.raises(install.Unavailable, match="remove"):
        install._program(tmp_path / "bin" / "node")


def test_a_dialog_hears_answers_and_tells_last_words(tmp_path):
    dialog = Dialog([sys.executable, "-c", ECHO], tmp_path / "err")
    try:
        assert dialog.ask("say", word="a") == {"command": "say", "word": "a"}
        assert dialog.ask("say", word="b")["word"] == "b"
        began = time.monotonic()
        with pytest.raises(RuntimeError, match="no answer"):
            dialog.hear(0.05)
        assert time.monotonic() - began < 5
        with pytest.raises(RuntimeError, match="out of order"):
            dialog.ask("die")
    finally:
        dialog.close()
