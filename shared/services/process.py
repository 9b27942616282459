"""What a process of ours asks of its operating system. Linux only.

Called first thing in a program, from its main thread: the kernel binds the wish to the *thread*
that started us, so a parent starts its programs from its main thread as well.
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: signal.Signals, parent: int | None = None) -> None:
    """Have the kernel send us a signal when our parent dies, however it dies.

    A change of user id clears the wish: drop privileges before. It outlives an exec.

    Args:
        number: SIGTERM to drain, SIGKILL to vanish.
        parent: its process id, when known: then a parent that died before this call counts too.

    Raises:
        OSError: the kernel refused (not Linux).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), number)
