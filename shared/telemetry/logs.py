"""Structured log: one JSON object a line, one write of at most 4,096 bytes a line.

Longer lines tear when several processes share a pipe, so they are cut. A reader that stalls must
not stall jobs: the handler asks first whether a pipe takes a whole line, and drops and counts
instead of blocking. (Making the pipe non-blocking instead would make it so for everything else that
writes there: a handler's own `print` would fail.) Set up by each program's main, never at import.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import select
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

MAX_LINE = 4096
_PLAIN = frozenset(vars(logging.makeLogRecord({})))


class JsonFormatter(logging.Formatter):
    """Render a record with its extra fields as one bounded JSON line."""

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its newline."""
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._fields,
            **{k: v for k, v in vars(record).items() if k not in _PLAIN},
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return _bounded(entry)


def _bounded(entry: dict[str, Any]) -> str:
    line = json.dumps(entry, default=str, ensure_ascii=True)
    if len(line) < MAX_LINE:
        return line
    for key in ("error", "message"):
        over = len(line) - MAX_LINE + 64
        if over > 0 and len(str(entry.get(key, ""))) > 200:
            text = str(entry[key])
            entry[key] = text[: max(200, len(text) - 2 * over)] + " … (cut)"
            line = json.dumps(entry, default=str, ensure_ascii=True)
    if len(line) >= MAX_LINE:
        line = json.dumps({k: str(v)[:200] for k, v in entry.items()}, ensure_ascii=True)
    return line if len(line) < MAX_LINE else line[: MAX_LINE - 2] + "}"


class DroppingHandler(logging.StreamHandler[TextIO]):
    """Write each line with one `write` call; count instead of waiting for a stalled reader."""

    dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or drop it."""
        try:
            if self._takes_a_line():
                os.write(self.stream.fileno(), (self.format(record) + "\n").encode())
            else:
                self.dropped += 1
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EPIPE, errno.ENOSPC, errno.EBADF):
                raise
            self.dropped += 1

    def _takes_a_line(self) -> bool:
        """Whether a write returns at once: Linux calls a pipe writable when 4,096 bytes fit."""
        poll = select.poll()
        poll.register(self.stream.fileno(), select.POLLOUT)
        return bool(poll.poll(0))


def setup(level: str, **fields: object) -> None:
    """Send the root logger to standard error as JSON lines.

    Args:
        level: debug, info, warning or error.
        fields: added to every line (process, queue, slot).
    """
    handler = DroppingHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(fields))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("httpx").setLevel(logging.WARNING)
