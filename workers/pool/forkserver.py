"""The fork server: where children come from, already holding the handlers' imports.

The only importer of `multiprocess`, used for its fork server and its Process alone. Start children
from the main thread: the kernel ties "die with your parent" to the thread that started the server.
Must never hold a database connection or a socket of this process: the server is executed anew, and
children inherit from it, not from us.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import multiprocess
from multiprocess import forkserver, resource_tracker, util
from multiprocess import process as multiprocess_process

_MAX_SOCKET_FOLDER = 70  # characters; a socket's path may have 107

Target = Callable[[socket.socket, int], None]


class SpawnFailed(Exception):
    """The server died, or was killed, while a child was being started."""


class PoolBroken(Exception):
    """No child can be started."""


class ForkServer:
    """Starts children.

    Args:
        target: run in each child as `target(channel, pid of the server)`; an importable function.
        preload: modules that the server imports before it forks.
        folder: for the server's socket; None = a temporary one.
        environment: all that the server and its children get; None = ours.
    """

    def __init__(
        self,
        target: Target,
        preload: Sequence[str],
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._target = target
        self._pidfd: int | None = None
        self._pid: int | None = None
        self._environment = environment
        util.spawnv_passfds = self._launch  # how multiprocess starts a server
        self._context = multiprocess.get_context("forkserver")
        self._context.set_forkserver_preload(list(preload))
        _no_resource_tracker()
        if folder is not None and len(str(folder)) <= _MAX_SOCKET_FOLDER:
            _socket_folder(folder)

    @property
    def pid(self) -> int | None:
        """Process id of the server, dead or alive; None = not started yet."""
        return self._pid

    def ensure_running(self) -> None:
        """Start the server, or start it again; returns before it has imported anything."""
        forkserver.ensure_running()
        pid = forkserver._forkserver._forkserver_pid  # noqa: SLF001
        if pid != self._pid:
            self._forget()
            self._pid, self._pidfd = pid, os.pidfd_open(pid)

    def _launch(self, path: bytes, words: Sequence[bytes], descriptors: Sequence[int]) -> int:
        """Start the server's program, as multiprocess would, but with an environment of its own."""
        program = subprocess.Popen(
            words, executable=path, pass_fds=descriptors, env=self._environment
        )
        program.returncode = 0  # multiprocess waits for it, nobody else
        return program.pid

    def spawn(self, name: str, channel: socket.socket) -> Any:
        """Start a child of ours, as `start` does."""
        return self.start(name, self._target, (channel,))

    def start(self, name: str, target: Callable[..., None], given: tuple[Any, ...]) -> Any:
        """Start a child; waits for the server's imports when it is new.

        Args:
            name: of the process.
            target: run in it as `target(*given, pid of the server)`; an importable function.
            given: what it takes; sockets and pipes travel with it.

        Returns:
            Its multiprocess.Process.

        Raises:
            SpawnFailed: the server ended meanwhile.
        """
        self.ensure_running()
        process = self._context.Process(
            target=target, args=(*given, self._pid), name=name, daemon=False
        )
        try:
            process.start()
        except (EOFError, OSError) as error:
            raise SpawnFailed(f"fork server {self._pid}: {error!r}") from error
        finally:
            # Each start polls all processes that multiprocess knows, and would read away what the
            # server told of another one's death: that death would be taken for the server's.
            multiprocess_process._children.discard(process)  # noqa: SLF001
        return process

    def kill(self) -> None:
        """SIGKILL the server, and so, through the kernel, all its children. From any thread."""
        if self._pidfd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """End the server and reap it."""
        if self._pid is not None:
            self.kill()
            forkserver._forkserver._stop()  # noqa: SLF001
            self._forget()

    def _forget(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
        self._pid = self._pidfd = None


def _no_resource_tracker() -> None:
    """Keep multiprocess from starting its tracker (10 MiB): nothing here needs one.

    It takes a tracker for running when its descriptor can be written to.
    """
    tracker = resource_tracker._resource_tracker  # noqa: SLF001
    if tracker._fd is None:  # noqa: SLF001
        tracker._fd = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)  # noqa: SLF001


def _socket_folder(folder: Path) -> None:
    """Have the server's socket in a folder of ours, so that nothing piles up after kill -9."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in folder.glob("listener-*"):
        left.unlink(missing_ok=True)
    multiprocess.current_process()._config["tempdir"] = str(folder)  # noqa: SLF001


def server_is_gone(sentinel: int) -> bool:
    """Whether the server died before it could tell of a child's death.

    Args:
        sentinel: of the child, readable: it holds the exit code, or has ended without one.
            multiprocess calls the latter exit code 255, which a child may also have itself.
    """
    waiting = fcntl.ioctl(sentinel, termios.FIONREAD, struct.pack("i", 0))
    return bool(struct.unpack("i", waiting)[0] == 0)


def leave_server() -> None:
    """In a child: close the inherited end of the server's alive pipe."""
    server = forkserver._forkserver  # noqa: SLF001
    if server._forkserver_alive_fd is not None:  # noqa: SLF001
        os.close(server._forkserver_alive_fd)  # noqa: SLF001
        server._forkserver_alive_fd = None  # noqa: SLF001
