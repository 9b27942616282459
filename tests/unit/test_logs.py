"""Log lines: one JSON object each, never too long to be written whole, never in the way."""

from __future__ import annotations

import fcntl
import json
import logging
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.telemetry.logs import MAX_LINE, DroppingHandler, JsonFormatter


def record(message: str, error: BaseException | None = None, **extra: object) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    made = logging.LogRecord("test", logging.WARNING, __file__, 1, message, None, info)
    vars(made).update(extra)
    return made


def test_a_line_names_time_level_process_and_extras():
    line = JsonFormatter({"process": "relay"}).format(record("hello", job="7"))
    entry = json.loads(line)
    assert entry["time"].endswith("+00:00")
    del entry["time"]
    assert entry == {
        "level": "warning",
        "logger": "test",
        "message": "hello",
        "process": "relay",
        "job": "7",
    }


@given(message=st.text(max_size=6000), extra=st.text(max_size=6000), error=st.text(max_size=6000))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_line_is_one_write(message, extra, error):
    line = JsonFormatter({"slot": "x"}).format(record(message, ValueError(error), detail=extra))
    assert len(line.encode()) + 1 <= MAX_LINE
    assert "\n" not in line


@pytest.mark.parametrize("size", [3_000, 5_000, 100_000])
@pytest.mark.parametrize("letter", ["x", "漢", '"', "\n"])
def test_a_long_message_is_cut_and_still_json(size, letter):
    entry = json.loads(JsonFormatter({}).format(record(letter * size)))
    assert entry["level"] == "warning"
    assert entry["message"].startswith(letter * 100)


@pytest.mark.parametrize("flags", [0, os.O_NONBLOCK])
def test_a_stalled_reader_costs_lines_not_time(flags):
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETFL, flags)
    with os.fdopen(writing, "w") as stream:
        handler = DroppingHandler(stream)
        handler.setFormatter(JsonFormatter({}))
        for _ in range(200):
            handler.emit(record("x" * 3_000))
        assert handler.dropped > 0
        os.close(reading)
        before = handler.dropped
        handler.emit(record("nobody reads"))
        assert handler.dropped == before + 1
