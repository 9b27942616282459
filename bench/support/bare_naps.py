"""What jobs that wait leave possible: processes that do nothing but the waits of `nap`.

    figure = bare_naps(processes=4, seconds=2)

A millisecond asked for is more than one: the kernel wakes late, the interpreter comes back late.
No job system can be faster than this with as many children, each of which runs one job at a time.
"""

from __future__ import annotations

import subprocess
import sys
import time

from bench.support.application import doze


def bare_naps(processes: int, seconds: float) -> float:
    """Naps a second of so many processes together."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.support.bare_naps", str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()  # it is ready
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in running)


def _loop(seconds: float) -> float:
    """Naps a second of this process."""
    print("ready", flush=True)
    sys.stdin.readline()
    begun, naps = time.monotonic(), 0
    while (spent := time.monotonic() - begun) < seconds:
        doze()
        naps += 1
    return naps / spent


if __name__ == "__main__":
    print(_loop(float(sys.argv[1])))
