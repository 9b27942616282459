"""What became of each job that the pool took, told to who gave it.

Before this: the pool heard a child, found it silent, or buried it. After it: for every job exactly
one of three calls of the `Client`. What a child has not said is read from its word and its permits
(workers.pool.progress). Must never decide what happens to a child.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from shared.clock import Clock
from workers.pool import ends
from workers.pool.chunk import Chunk, End, Job, Run
from workers.pool.messages import Done, Outcome
from workers.pool.slot import Slot


class Client(Protocol):
    """Who gives jobs to a pool. Called in the pool's loop; gives none meanwhile."""

    def ended(self, end: End) -> None:
        """A job ended, and there is something to tell."""
        ...

    def completed(self, run: Run) -> None:
        """Jobs completed, and there is nothing more to tell."""
        ...

    def returned(self, jobs: Sequence[Job]) -> None:
        """Jobs were not begun: they are the client's again, in order."""
        ...

    def progressed(self, job_id: int, n: float, of: float | None) -> None:
        """A job told how far it is; it goes on."""
        ...


class Accounts:
    """The books of one pool."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def refused(self, job: Job, error: Exception) -> None:
        """The kernel does not carry this job."""
        self._client.ended(ends.too_long(job, error, self._wall()))

    def returned(self, jobs: Sequence[Job]) -> None:
        """These were not handed over after all."""
        if jobs:
            self._client.returned(jobs)

    def told(self, slot: Slot, outcome: Outcome) -> bool:
        """A child told how one of its jobs ended.

        Returns:
            Whether it was the child's to tell.
        """
        chunk = slot.chunk
        job = None if chunk is None else chunk.job(outcome.index)
        if chunk is None or job is None:
            return False
        now = self._clock.monotonic()
        seconds = outcome.seconds or now - chunk.since
        self._completed(chunk, outcome.index, now - seconds)
        chunk.end(outcome.index + 1, now)
        end = ends.told(slot, job, outcome, ends.Time(self._wall() - seconds, seconds))
        if end.outcome == "cancelled":  # whatever the job started goes with its child
            slot.farewell = end
        else:
            self._client.ended(end)
        return True

    def done(self, slot: Slot, done: Done) -> bool:
        """A child told that it will run no more of its jobs.

        Returns:
            Whether it had any.
        """
        chunk, slot.chunk = slot.chunk, None
        if chunk is None:
            return False
        self._completed(chunk, done.ended, self._clock.monotonic(), done.seconds)
        self.returned(chunk.cut(len(chunk)))
        return True

    def passed(self, chunk: Chunk, seen: tuple[int, float] | None) -> None:
        """All before the job that a child's word named had ended.

        Args:
            chunk: that the child holds.
            seen: what its word said *before* its pipe was read to its end: what those jobs told
                was in there.
        """
        if seen is not None:
            self._completed(chunk, *seen)

    def progress(self, slots: Iterable[Slot]) -> None:
        """Tell what jobs told of how far they are, since this was last called."""
        for slot in slots:
            told = slot.progressed()
            if told is not None:
                self._client.progressed(*told)

    def take_back(self, slot: Slot, leave: int = 0) -> None:
        """Take back what a child has not begun.

        Args:
            slot: the child.
            leave: so many of a chunk of which nothing was begun.
        """
        self.returned(slot.take_back(leave))

    def died(self, slot: Slot, death: ends.Death) -> None:
        """A child is dead and reaped, its pipe empty: only the job that ran is hurt.

        Args:
            slot: the child.
            death: how it died.
        """
        end, slot.farewell = slot.farewell, None
        if end is not None:
            self._client.ended(end)
        if slot.chunk is None:
            return
        back = slot.take_back()
        running = slot.running()
        seen = {} if running is None else slot.seen(running[0])
        chunk, slot.chunk = slot.chunk, None
        now = self._clock.monotonic()
        if running is not None:
            place, began = running
            self._completed(chunk, place, began)
            job = chunk.job(place)
            if job is not None:
                chunk.end(place + 1, now)
                seconds = max(0.0, now - began)
                time = ends.Time(self._wall() - seconds, seconds)
                self._client.ended(ends.died(slot, job, death, time, seen))
        self.returned([*chunk.cut(len(chunk)), *back])

    def _completed(
        self, chunk: Chunk, index: int, moment: float, seconds: float | None = None
    ) -> None:
        """All before this place had ended by that moment, without a word: they completed."""
        passed = moment - chunk.since if seconds is None else seconds
        jobs = chunk.end(index, moment)
        if jobs:
            age = self._clock.monotonic() - moment + passed
            self._client.completed(Run(jobs, self._wall() - age, max(0.0, passed)))

    def _wall(self) -> float:
        return self._clock.wall().timestamp()
