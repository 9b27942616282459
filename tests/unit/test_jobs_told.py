"""One job as a person sees it: the last error whole, with its place, at any width."""

from __future__ import annotations

import pytest

from panel.cli import jobs_told
from shared.jobs.inspect import Attempt, Job

STACK = 'Traceback (most recent call last):\n  File "shop.py", line 7, in report\n    pay()\n'
AT = "2026-11-29T18:50:45.123+00:00"


def attempt(run: int, error: str | None, stack: str = "") -> Attempt:
    evidence = {"stack": stack} if stack else {}
    return Attempt(run, run, "failed", "retryable", error, "exception", evidence, AT, AT, AT)


def job(*attempts: Attempt) -> Job:
    return Job("7", "t.fail", "notify", "retryable", 2, 10, 2, AT, args={}, attempts=attempts)


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_the_last_error_is_told_whole_with_its_stack():
    error = "ValueError: " + "no such order, and a long story about it " * 4
    told = jobs_told.told(job(attempt(1, "ValueError: first"), attempt(2, error, STACK)))
    lines = told.splitlines()
    assert f"  {error.rstrip()}" in lines
    assert '    File "shop.py", line 7, in report' in lines
    assert "      pay()" in lines
    assert not any("first" in line for line in lines[lines.index(f"  {error.rstrip()}") :])


def test_control_characters_of_an_error_never_reach_the_terminal():
    told = jobs_told.told(job(attempt(1, "ValueError: \x1b[2Jgone", "  at \x07here")))
    assert "\x1b[2J" not in told
    assert "\x07" not in told


def test_a_list_for_programs_holds_only_what_was_read():
    [shown] = jobs_told.unread([job()])
    assert shown["id"] == "7"
    assert not {"args", "attempts", "result"} & set(shown)
