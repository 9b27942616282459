"""Which of its jobs a child runs, in memory that it shares with its parent; and which it may begin.

Two words of 8 bytes in a memory file: the child's (number of the job that runs, when it began) and
the parent's (number of the job that is asked to stop). Each is written by one side alone, in one
aligned store. Beside them an eventfd that counts permits: the child takes one before each job, the
parent takes back what is left. The kernel gives each permit to one of them, so a job is either
begun or taken back, never both, whatever the child is doing or has stopped doing.
"""

from __future__ import annotations

import mmap
import os

from shared.clock import SYSTEM

_SIZE = mmap.PAGESIZE
_CHILD, _PARENT = 0, 1  # which word
_MOMENT = (1 << 48) - 1  # microseconds of CLOCK_MONOTONIC: nine years of uptime
_NUMBERS = (1 << 16) - 1  # of jobs; they wrap, a chunk is far shorter


class Progress:
    """The words and the permits of one child.

    Args:
        memory: descriptor of the memory file.
        permits: descriptor of the eventfd. Both belong to this object from now on.
    """

    def __init__(self, memory: int, permits: int) -> None:
        self.memory = memory
        self.permits = permits
        self._map = mmap.mmap(memory, _SIZE)
        self._words = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls) -> Progress:
        """Make both; in the child, which sends the descriptors with its hello."""
        memory = os.memfd_create("progress")
        os.ftruncate(memory, _SIZE)
        return cls(memory, os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK | os.EFD_SEMAPHORE))

    # The child's side.

    def move(self, number: int) -> float:
        """Say that all jobs before this one have ended and were told of, and that it begins now.

        Returns:
            The moment, in seconds.
        """
        moment = SYSTEM.monotonic()
        self._words[_CHILD] = (number & _NUMBERS) << 48 | int(moment * 1e6) & _MOMENT
        return moment

    def begin(self) -> bool:
        """Take the permit of the next job; False = it was taken back."""
        try:
            os.eventfd_read(self.permits)
        except BlockingIOError:
            return False
        return True

    def asked(self, number: int) -> bool:
        """Whether this job is asked to stop."""
        return self._words[_PARENT] == number

    # The parent's side.

    def at(self) -> tuple[int, float]:
        """Number of the job that the child began last (it wraps, see `behind`), and when."""
        word = self._words[_CHILD]
        return word >> 48, (word & _MOMENT) / 1e6

    def permit(self, jobs: int) -> None:
        """Let the child begin so many more jobs."""
        os.eventfd_write(self.permits, jobs)

    def take_back(self) -> int:
        """Take back all permits that are left; how many jobs the child will not begin."""
        taken = 0
        while self.begin():
            taken += 1
        return taken

    def ask(self, number: int) -> None:
        """Name the job that is to stop; a signal makes the child look."""
        self._words[_PARENT] = number

    def close(self) -> None:
        """Give the memory and the descriptors back."""
        self._words.release()
        self._map.close()
        os.close(self.memory)
        os.close(self.permits)


def behind(number: int, first: int) -> int:
    """How many jobs a number of `Progress.at` lies behind `first`; huge when it lies before it."""
    return (number - first) & _NUMBERS
