"""The child of a kind that gets no database: `-m workers.sealed KIND`, started for one job.

Before this: the pool started it as it starts a foreign program (workers.pool.programs), so that
nothing of its parents' memory is in it, and the environment that it was given tells of no database.
After it: the outcome goes back by the same lines. Must never load an adapter's address, and never
write to descriptor 3 anything but whole lines.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
from contextlib import AbstractContextManager, closing
from functools import partial
from types import FrameType
from typing import Any, BinaryIO, NoReturn

import msgspec

from shared.app import load_app
from shared.config.settings import Settings
from shared.errors import ConfigurationError
from shared.events.event import Event
from shared.jobs.context import refuse_database
from shared.jobs.failures import clean
from shared.jobs.hooks import load_hooks
from shared.services import exit_codes
from shared.services.coroutines import Coroutines
from shared.services.service import ServiceThread
from workers.handlers.registry import load_one
from workers.pool.child import STACK, Interruption
from workers.pool.launcher import ANSWERS
from workers.pool.lines import Hello, Log, Message, Progress, Told, say
from workers.pool.messages import Outcome
from workers.runner import Runner, Surroundings

MOST_LOGGED = 2048  # bytes of a log line
_LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))


class _Mouth:
    """Writes lines, whole, from any thread; knows whose job they are about."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.job_id = ""
        self.stopped = False

    def say(self, message: Message) -> None:
        line = say(message)
        with self._lock:
            while line:
                line = line[os.write(ANSWERS, line) :]

    def asked(self, _number: int) -> bool:
        """Whether the one job was asked to stop."""
        return self.stopped

    def tell(self, _number: int, n: float, of: float | None) -> None:
        """How far the job is."""
        self.say(Progress(self.job_id, n, of))


class _NoSession:
    """In place of a way to the database."""

    def connection(self, pristine: bool = False) -> AbstractContextManager[Any]:  # noqa: ARG002  (there is none)
        refuse_database()

    def load_event(self, _event_id: str) -> Event | None:
        self.connection()
        return None

    def renew(self) -> None:
        """Nothing to renew."""


class _Logs(logging.Handler):
    """Log lines go to the parent, which knows the job's fields."""

    def __init__(self, mouth: _Mouth) -> None:
        super().__init__()
        self._mouth = mouth

    def emit(self, record: logging.LogRecord) -> None:
        level = next((word for least, word in _LEVELS if record.levelno >= least), "debug")
        told = {"text": clean(self.format(record), MOST_LOGGED), "level": level}
        self._mouth.say(msgspec.convert(told | {"type": "log"}, Log))


def main(kind: str) -> int:
    """Say hello, run one job, leave.

    Args:
        kind: whose job it will be.
    """
    orders, mouth = _take_pipes(), _Mouth()
    interruption = Interruption(mouth)
    signal.signal(signal.SIGTERM, partial(_asked, mouth, interruption))
    with closing(Coroutines()) as coroutines:
        try:
            runner = _prepare(kind, mouth, interruption, coroutines)
        except BaseException as error:  # noqa: BLE001  (an import may raise anything)
            mouth.say(Hello(refused=clean(str(error) or repr(error))))
            return exit_codes.CONFIGURATION
        faulthandler.register(STACK, all_threads=True)
        ServiceThread("spare", _idle, lambda _: None).start()  # takes STACK if ours is deaf
        mouth.say(Hello(stacks=STACK))
        for line in orders:
            order = msgspec.json.decode(line)
            if order["type"] == "run":
                job = order["job"]
                mouth.job_id = job["id"]
                mouth.say(_told(job["id"], interruption.guard(runner, 0, job)))
    return exit_codes.OK


def _prepare(
    kind: str, mouth: _Mouth, interruption: Interruption, coroutines: Coroutines
) -> Runner:
    settings = Settings.load()
    logging.basicConfig(
        level=settings.log_level.upper(), handlers=[_Logs(mouth)], format="%(message)s", force=True
    )
    app = load_app(settings.app)
    interruption.gently = coroutines.interrupt
    around = Surroundings(_NoSession(), lambda: interruption.asked, interruption.report, coroutines)
    return Runner({kind: load_one(app, kind)}, load_hooks(app.hooks), around)


def _told(job_id: str, outcome: Outcome) -> Told:
    """An outcome as a line; one that puts the job off, for what is away, says so."""
    away = outcome.outcome == "snoozed" and outcome.error is not None
    fields = {
        "type": "outcome",
        "id": job_id,
        "outcome": "away" if away else outcome.outcome,
        "error": outcome.error,
        "delay": None if away else outcome.delay,
        "stack": outcome.stack or None,
    }
    told = msgspec.convert(fields, Told)
    if bytes(outcome.result):
        told.result = outcome.result
    return told


def _asked(mouth: _Mouth, interruption: Interruption, number: int, frame: FrameType | None) -> None:
    mouth.stopped = True
    interruption.handle(number, frame)


def _take_pipes() -> BinaryIO:
    """Keep both pipes for ourselves: what a handler starts must neither read nor hold them."""
    orders = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.set_inheritable(ANSWERS, False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return orders


def _idle(stop: threading.Event) -> None:
    stop.wait()


def _begin() -> NoReturn:
    if len(sys.argv) != 2:
        raise ConfigurationError("usage: -m workers.sealed KIND   (started by a queue process)")
    sys.exit(main(sys.argv[1]))


if __name__ == "__main__":
    _begin()
