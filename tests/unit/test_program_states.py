"""The metrics program's look at supervisord: one series a program, none when nobody answers."""

from __future__ import annotations

import pytest

from metrics.programs import Programs
from shared.services.supervision import Program, SupervisordAway
from shared.stats import Reading


def test_each_program_has_its_state_and_old_ones_are_told_no_longer():
    answers = [
        [Program("queues", "index", "RUNNING", 7), Program("relay", "relay", "FATAL", 0)],
        SupervisordAway("none runs"),
    ]

    def ask():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    programs = Programs(ask, pytest.fail)
    assert programs.readings() == []
    programs.read()
    assert programs.readings() == [
        Reading("supervisor_process_state", ("index", "RUNNING"), 1),
        Reading("supervisor_process_state", ("relay", "FATAL"), 1),
    ]
    programs.read()
    assert programs.readings() == []
