"""A child for tests of the pool alone: its jobs say in their args what to do."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from workers.pool.child import Interruption, serve
from workers.pool.messages import Outcome


def main(channel: socket.socket, server: int) -> None:
    """Run in each child."""
    serve(channel, server, lambda _: attempt)


def refuse(channel: socket.socket, server: int) -> None:
    """A child that cannot work."""

    def prepare(_: Interruption) -> Any:
        raise RuntimeError("module nowhere cannot be imported")

    serve(channel, server, prepare)


def hang(channel: socket.socket, server: int) -> None:
    """A child that never says hello."""
    time.sleep(600)


def hang_if_told(channel: socket.socket, server: int) -> None:
    """A child that never says hello if a file tells so; it takes the file away."""
    try:
        Path(os.environ["TEST_HANG"]).unlink()
    except FileNotFoundError:
        main(channel, server)
    else:
        hang(channel, server)


def attempt(job: dict[str, Any]) -> Outcome:
    """Do what the job says."""
    args = job["args"]
    if args["do"] == "fail":
        return Outcome("failed", error=args["error"])
    value = ACTIONS[args["do"]](args)
    if value is None:
        return Outcome("completed")
    return Outcome("completed", result=msgspec.Raw(msgspec.json.encode(value)))


def stuck(args: dict[str, Any]) -> None:
    """In C, holding the interpreter's lock, deaf to signals."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(600)


def start_programs(args: dict[str, Any]) -> None:
    """Two programs, one in a session of its own; then wait."""
    for alone in (False, True):
        subprocess.Popen(["sleep", args.get("mark", "611")], start_new_session=alone)
    if args.get("then") == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


def hog(args: dict[str, Any]) -> None:
    """Holds so many MiB, for so long."""
    held = bytearray(args["mib"] << 20)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(args["seconds"])


LEAKED: list[bytes] = []


def leak(args: dict[str, Any]) -> None:
    """Never gives back so many MiB."""
    LEAKED.append(os.urandom(1) * (args["mib"] << 20))


def burn(args: dict[str, Any]) -> None:
    """Computes, and does not wait."""
    end = time.monotonic() + args["seconds"]
    while time.monotonic() < end:
        sum(range(1000))
    if args.get("then") == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if args.get("then") == "fail":
        raise ValueError("burnt")


def swallow(args: dict[str, Any]) -> str:
    """Answers all the same when it is asked to stop."""
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        return "done all the same"
    return ""


def note(args: dict[str, Any]) -> None:
    """Append a line to a file: what really happened, whatever is told."""
    file = os.open(args["file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{args['number']}\n".encode())
    os.close(file)


def _link(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except FileNotFoundError:  # that of the listing itself
        return ""


ACTIONS = {
    "ok": lambda args: args.get("value"),
    "size": lambda args: len(args["text"]),
    "note": note,
    "pid": lambda _: os.getpid(),
    "sleep": lambda args: time.sleep(args["seconds"]),
    "exit": lambda args: os._exit(args["code"]),
    "die": lambda args: os.kill(os.getpid(), args["signal"]),
    "stuck": stuck,
    "hog": hog,
    "leak": leak,
    "burn": burn,
    "programs": start_programs,
    "swallow": swallow,
    "close": lambda _: (os.closerange(3, 60), time.sleep(600)),
    "modules": lambda _: sorted(sys.modules),
    "fds": lambda _: [_link(entry) for entry in Path("/proc/self/fd").iterdir()],
}
