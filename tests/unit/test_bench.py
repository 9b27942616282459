"""The frame of the measurements: sound figures, one way to report."""

from __future__ import annotations

import json

import pytest

from bench import __main__ as entry
from bench.support.figures import interleaved, milliseconds, quantile
from bench.support.report import Result, finish, table


def test_quantile_is_nearest_rank():
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert quantile(values, 0.5) == 3.0
    assert quantile(values, 0.99) == 5.0
    assert quantile(values, 0.2) == 1.0
    with pytest.raises(ValueError, match="expected values"):
        quantile([], 0.5)


def test_contestants_take_turns():
    turns: list[str] = []

    def contestant(name: str) -> float:
        turns.append(name)
        return float(len(turns))

    taken = interleaved({n: lambda n=n: contestant(n) for n in "ab"}, rounds=4)
    assert turns == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert taken == {"a": [1, 4, 5, 8], "b": [2, 3, 6, 7]}


def test_milliseconds_are_those_of_the_call():
    assert milliseconds(lambda: None) < milliseconds(lambda: sum(range(300_000)))


@pytest.mark.parametrize(
    ("result", "ok", "ratio"),
    [
        (Result("x", 49.0, 50, "lower"), True, None),
        (Result("x", 51.0, 50, "lower"), False, None),
        (Result("x", 150.0, 1.3, "higher", rival=100.0), True, 1.5),
        (Result("x", 120.0, 1.3, "higher", rival=100.0), False, 1.2),
    ],
)
def test_the_last_line_is_json_and_the_exit_code_says_the_same(result, ok, ratio, capsys):
    code = finish(("what", "ms"), [("one", 1.0)], result)
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(last) == ["name", "ours", "rival", "ratio", "target", "ok"]
    assert (last["ok"], last["ratio"], code) == (ok, ratio, 0 if ok else 1)


def test_a_table_lines_up():
    lines = table(("step", "n"), [("import", 2000), ("one", 3)]).splitlines()
    assert lines == ["step       n", "import  2000", "one        3"]


def test_an_unknown_name_is_refused_with_the_list(capsys):
    assert entry.main(["nothing_of_that_name"]) == 2
    assert "expected one of" in capsys.readouterr().err
