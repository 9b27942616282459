"""Runs an application's job handlers in the application's own interpreter.

The child protocol (docs/child_protocol.md) in one file: standard library only, Python 3.8 or newer,
nothing of Weirkeeper imported. Use it where it is installed, or copy this file alone into your own
project. A kind or a queue names the command, and Weirkeeper starts it:

    Kind("shop.mail", queue="notify",
         command=["/srv/shop/venv/bin/python", "-m", "weirkeeper.child", "shop.handlers"])

A module of handlers marks its functions, or has a mapping of them by kind:

    from weirkeeper.child import Completed, Retry, handles

    @handles("shop.mail")
    def mail(ctx, args):
        return Completed({"sent": args["to"]})

    HANDLERS = {"shop.invoice": invoice}

Before this: a queue process started us. After it: the outcome of each job goes back to it. Must
never write to descriptor 3 anything but whole lines of the protocol.
"""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import inspect
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Callable, Iterable, NoReturn

PROTOCOL = 1
ANSWERS = 3  # the descriptor that takes our lines
MAX_TEXT = 8 * 1024  # characters of an error or a stack
MAX_LOG = 2 * 1024  # characters of a log line: few enough for a pipe to take it whole
MAX_RESULT = 32 * 1024  # bytes
_STACKS = getattr(signal, "SIGUSR2", 0)
_MARK = "weirkeeper_kinds"  # attribute of a function that @handles marked

Handler = Callable[..., Any]


class Stopped(KeyboardInterrupt):
    """Raised in a handler that was asked to stop: its time is up, or the process drains.

    A KeyboardInterrupt, which `except Exception` lets pass, and for which psycopg cancels the query
    that runs and keeps its connection usable. Clean up in `finally`, and let it go on.
    """


@dataclass(frozen=True)
class Completed:
    """Done. `result` is a JSON value of at most 32 KiB, for whoever waits for the job."""

    result: Any = None

    def outcome(self) -> dict[str, Any]:
        """As it travels."""
        return {"outcome": "completed", "result": self.result}


@dataclass(frozen=True)
class Snooze:
    """Not now: run again after `seconds`. No attempt is spent."""

    seconds: float

    def outcome(self) -> dict[str, Any]:
        """As it travels."""
        return {"outcome": "snoozed", "delay": self.seconds}


@dataclass(frozen=True)
class Discard:
    """Failed for good: never try again."""

    reason: str

    def outcome(self) -> dict[str, Any]:
        """As it travels."""
        return {"outcome": "discarded", "error": _clean(str(self.reason))}


@dataclass(frozen=True)
class Retry:
    """A failed attempt without an exception; `seconds` in place of the kind's backoff."""

    reason: str
    seconds: float | None = None

    def outcome(self) -> dict[str, Any]:
        """As it travels."""
        return {"outcome": "failed", "error": _clean(str(self.reason)), "delay": self.seconds}


@dataclass(frozen=True)
class Away:
    """What the kind depends on is away: put off as its `outage` says, failed if it has none."""

    reason: str

    def outcome(self) -> dict[str, Any]:
        """As it travels."""
        return {"outcome": "away", "error": _clean(str(self.reason))}


def handles(*kinds: str) -> Callable[[Handler], Handler]:
    """Mark a function as the handler of these kinds: called as `function(ctx, args)`."""

    def mark(function: Handler) -> Handler:
        setattr(function, _MARK, (*getattr(function, _MARK, ()), *kinds))
        return function

    return mark


class Context:
    """First argument of every handler.

    Attributes:
        job_id: decimal text; the same in every run of a job.
        run: how often the job was claimed, this time included.
        attempt: number of this try, from 1.
        max_attempts: tries before the job is discarded.
        kind: of the job.
        deadline: moment of time.monotonic() at which it will be asked to stop.
        owner_id, trace, event_id: of the job, or None.
        log: a logger; its lines bear the job's id, kind and attempt.
    """

    def __init__(self, job: dict[str, Any], mouth: _Mouth, stop: _Stop) -> None:
        """Make the context of a job as the parent told it."""
        self.job_id: str = job["id"]
        self.run: int = job["run"]
        self.attempt: int = job["attempt"] + 1
        self.max_attempts: int = job["max_attempts"]
        self.kind: str = job["kind"]
        self.deadline = time.monotonic() + job["timeout_ms"] / 1000
        self.owner_id: str | None = job.get("owner_id")
        self.trace: str | None = job.get("trace")
        self.event_id: str | None = job.get("event_id")
        self.log = _logger(self.job_id, mouth)
        self._mouth = mouth
        self._stop = stop

    def cancelled(self) -> bool:
        """Whether the job was asked to stop: for loops in other threads than the main one."""
        return self._stop.asked

    def progress(self, n: float, of: float | None = None) -> None:
        """Tell how far the job is: `n` of `of`."""
        self._mouth.say({"type": "progress", "id": self.job_id, "n": n, "of": of})


class _Mouth:
    """Writes lines to the parent, whole, from any thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def say(self, message: dict[str, Any]) -> None:
        """Write one line.

        Raises:
            ValueError, TypeError: it holds what is no JSON; nothing was written.
        """
        told = {name: value for name, value in message.items() if value is not None}
        line = (json.dumps(told, allow_nan=False) + "\n").encode("ascii")
        with self._lock:
            while line:
                line = line[os.write(self._descriptor, line) :]


class _Logs(logging.Handler):
    """Sends what a handler logs to the parent, which knows the job's other fields."""

    def __init__(self, job_id: str, mouth: _Mouth) -> None:
        super().__init__()
        self._job_id = job_id
        self._mouth = mouth

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        level = "error" if record.levelno >= logging.ERROR else record.levelname.lower()
        known = level if level in ("debug", "info", "warning", "error") else "info"
        text = _clean(self.format(record), MAX_LOG)
        self._mouth.say({"type": "log", "id": self._job_id, "level": known, "text": text})


def _logger(job_id: str, mouth: _Mouth) -> logging.Logger:
    logger = logging.Logger("job", logging.DEBUG)  # noqa: LOG001  (nobody else's settings apply)
    logger.addHandler(_Logs(job_id, mouth))
    return logger


class _Stop:
    """Turns SIGTERM into Stopped, but only while a job runs."""

    def __init__(self) -> None:
        self.asked = False
        self._running = False

    def install(self) -> None:
        """Take the signal; call from the main thread."""
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, _number: int, _frame: Any) -> None:
        self.asked = True
        if self._running:
            self._running = False
            raise Stopped

    def guard(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run a job; one that is interrupted becomes the outcome "stopped"."""
        try:
            self._running = True
            try:
                if self.asked:  # before it began
                    raise Stopped
                return call()
            finally:
                self._running = False
        except Stopped as stopped:
            return {"outcome": "stopped", "stack": _stack(stopped)}


def find_handlers(names: Iterable[str]) -> dict[str, Handler]:
    """Import modules and return their handlers by kind.

    Args:
        names: of modules.

    Raises:
        LookupError: there is none, two of one kind, or one that takes other parameters.
    """
    found: dict[str, Handler] = {}
    for name in names:
        module = importlib.import_module(name)
        for kind, function in _declared(module):
            if found.setdefault(kind, function) is not function:
                raise LookupError(f"kind {kind}: expected one handler; got two")
            try:
                inspect.signature(function).bind("ctx", "args")
            except TypeError as error:
                raise LookupError(
                    f"kind {kind}: expected a handler (ctx, args); got {error}"
                ) from error
    if not found:
        raise LookupError(
            'expected functions marked with @handles("kind"), or a mapping HANDLERS; got none in '
            + ", ".join(names)
        )
    return found


def _declared(module: Any) -> Iterable[tuple[str, Handler]]:
    for function in list(vars(module).values()):
        for kind in getattr(function, _MARK, ()) if inspect.isfunction(function) else ():
            yield kind, function
    for kind, function in getattr(module, "HANDLERS", {}).items():
        yield kind, function


def _run(handlers: dict[str, Handler], job: dict[str, Any], context: Context) -> dict[str, Any]:
    """Run one job to its outcome; only Stopped passes."""
    try:
        answer = _handler(handlers, job["kind"])(context, job["args"])
        if inspect.iscoroutine(answer):
            answer = asyncio.run(answer)
        return _judge(answer)
    except Stopped:
        raise
    except BaseException as error:  # noqa: BLE001  (sys.exit in a handler is a failure too)
        told = traceback.format_exception_only(type(error), error)[-1].strip()
        return {"outcome": "failed", "error": _clean(told), "stack": _stack(error)}


def _handler(handlers: dict[str, Handler], kind: str) -> Handler:
    if kind not in handlers:
        known = ", ".join(sorted(handlers))
        raise LookupError(f"kind {kind}: expected one of {known}")
    return handlers[kind]


def _judge(answer: Any) -> dict[str, Any]:
    if answer is None:
        return {"outcome": "completed"}
    tell = getattr(answer, "outcome", None)  # by its shape: this file may be imported twice
    if not callable(tell):
        raise TypeError(
            "expected None, Completed, Snooze, Discard, Retry or Away; "
            f"got {type(answer).__name__}; wrap a result in Completed(...)"
        )
    told: dict[str, Any] = tell()
    size = len(json.dumps(told.get("result"), allow_nan=False, ensure_ascii=False).encode())
    if size > MAX_RESULT:
        raise ValueError(f"result: expected at most {MAX_RESULT} bytes of JSON; got {size}")
    return told


def serve(handlers: dict[str, Handler], lines: BinaryIO, mouth: _Mouth, stop: _Stop) -> None:
    """Run the jobs that come, one after another, until the parent closes its end."""
    for line in lines:
        order = json.loads(line)
        if order["type"] != "run":
            continue  # a request to stop comes as SIGTERM, too
        job = order["job"]
        context = Context(job, mouth, stop)
        outcome = stop.guard(lambda job=job, context=context: _run(handlers, job, context))  # type: ignore[misc]
        mouth.say({"type": "outcome", "id": job["id"], **outcome})


def main(names: Iterable[str]) -> int:
    """Be a child: say hello, then run jobs until standard input ends.

    Args:
        names: modules that have the handlers.
    """
    names = list(names)
    lines, mouth = _take_pipes()
    stop = _Stop()
    stop.install()
    try:
        handlers = find_handlers(names)
    except BaseException as error:  # noqa: BLE001  (an import may raise anything)
        traceback.print_exc()
        told = f"{type(error).__name__}: {error}"
        mouth.say({"type": "hello", "protocol": PROTOCOL, "refused": _clean(told)})
        return 78
    if _STACKS:
        faulthandler.register(_STACKS, all_threads=True)
    mouth.say({"type": "hello", "protocol": PROTOCOL, "stacks": _STACKS or None})
    serve(handlers, lines, mouth, stop)
    return 0


def _take_pipes() -> tuple[BinaryIO, _Mouth]:
    """Keep both pipes for ourselves: what a handler starts must neither read nor hold them."""
    lines = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.set_inheritable(ANSWERS, False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return lines, _Mouth(ANSWERS)


def _clean(text: str, limit: int = MAX_TEXT) -> str:
    """Text that can be stored; one that is too long loses its middle."""
    whole = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    half = limit // 2
    return whole if len(whole) <= limit else whole[:half] + " ... " + whole[-half:]


def _stack(error: BaseException) -> str:
    return _clean("".join(traceback.format_exception(type(error), error, error.__traceback__)))


def _take_name() -> None:
    """Be found by the name that handlers import us by, so that we are not loaded twice."""
    this = sys.modules["__main__"]
    spec = getattr(this, "__spec__", None)
    name = spec.name if spec else Path(__file__).stem
    sys.modules.setdefault(name, this)
    package, _, leaf = name.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], leaf, this)


def _begin() -> NoReturn:
    _take_name()
    try:
        os.fstat(ANSWERS)
    except OSError:
        started = False
    else:
        started = len(sys.argv) > 1
    if not started:
        sys.exit("usage: python -m weirkeeper.child MODULE...   (started by a queue process)")
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    _begin()
