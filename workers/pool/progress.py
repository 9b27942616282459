"""Which of its jobs a child runs, in memory that it shares with its parent; and which it may begin.

Words of 8 bytes in a memory file: the child's (number of the job that runs, when it began), the
parent's (number of the job that is asked to stop), how far the job is as its handler told, and what
the child used of CPU time and memory. Each is written by one side alone, in one aligned store.
Beside them an eventfd that counts permits: the child takes one before each job, the parent takes
back what is left. The kernel gives each permit to one of them, so a job is either begun or taken
back, never both, whatever the child is doing or has stopped doing.
"""

from __future__ import annotations

import mmap
import os
from math import isnan, nan

from shared.clock import SYSTEM
from workers.pool.usage import own_peak

WEIGH = 0.1  # seconds
WEIGH_JOBS = 16  # those that leak are many within WEIGH on a fast machine; it costs 0.5 us
_SIZE = mmap.PAGESIZE
_CHILD, _PARENT, _TOLD, _N, _OF, _CPU, _PEAK, _BASE = range(8)  # which word
_MOMENT = (1 << 48) - 1  # microseconds of CLOCK_MONOTONIC: nine years of uptime
_TIMES = (1 << 47) - 1
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
        self._floats = memoryview(self._map).cast("d")
        self._unweighed, self._weigh_at = 0, 0.0
        self._times = 0  # that something was told, or heard

    @classmethod
    def create(cls) -> Progress:
        """Make both; in the child, which sends the descriptors with its hello."""
        memory = os.memfd_create("progress")
        os.ftruncate(memory, _SIZE)
        made = cls(memory, os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK | os.EFD_SEMAPHORE))
        made.start()
        return made

    # The child's side.

    def start(self) -> None:
        """Note what memory the child holds before its first job."""
        self._floats[_BASE] = self._floats[_PEAK] = own_peak()

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

    def tell(self, number: int, n: float, of: float | None) -> None:
        """Say how far this job is. The word that names it is empty while the others change."""
        self._times = (self._times + 1) & _TIMES
        self._words[_TOLD] = 0
        self._floats[_N] = n
        self._floats[_OF] = nan if of is None else of
        self._words[_TOLD] = (number & _NUMBERS) << 48 | self._times << 1 | 1

    def begins(self, cpu: float) -> None:
        """Say how much CPU time (s) this process had used before it began what it was given."""
        self._floats[_CPU] = cpu

    def weigh(self, moment: float) -> None:
        """Say how much memory this process has held at most; every WEIGH seconds or WEIGH_JOBS."""
        self._unweighed += 1
        if self._unweighed == WEIGH_JOBS or moment >= self._weigh_at:
            self._unweighed, self._weigh_at = 0, moment + WEIGH
            self._floats[_PEAK] = own_peak()

    def asked(self, number: int) -> bool:
        """Whether this job is asked to stop."""
        return self._words[_PARENT] == number

    # The parent's side.

    def at(self) -> tuple[int, float]:
        """Number of the job that the child began last (it wraps, see `behind`), and when."""
        word = self._words[_CHILD]
        return word >> 48, (word & _MOMENT) / 1e6

    def told(self, number: int) -> tuple[float, float | None] | None:
        """How far this job is; None = it told nothing yet, or does so at this moment."""
        word = self._words[_TOLD]
        n, of = self._floats[_N], self._floats[_OF]
        if not word or word >> 48 != number & _NUMBERS or word != self._words[_TOLD]:
            return None
        return n, None if isnan(of) else of

    def told_anew(self) -> bool:
        """Whether something was told since this was last asked."""
        before, self._times = self._times, self._words[_TOLD]
        return self._times not in (0, before)

    @property
    def cpu(self) -> float:
        """CPU time (s) that the child had used before it began what it has."""
        return self._floats[_CPU]

    @property
    def base(self) -> float:
        """Memory (MiB) that the child held when it began, most of it shared with its siblings."""
        return self._floats[_BASE]

    @property
    def growth(self) -> float:
        """Memory (MiB) that the child has held at most beyond that, as it said last."""
        return self._floats[_PEAK] - self._floats[_BASE]

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
        self._floats.release()
        self._map.close()
        os.close(self.memory)
        os.close(self.permits)


def behind(number: int, first: int) -> int:
    """How many jobs a number of `Progress.at` lies behind `first`; huge when it lies before it."""
    return (number - first) & _NUMBERS
