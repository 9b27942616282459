"""When to claim, how much, and when to sleep.

Runs in the database's thread. Before this: notices, polls, room in the executor. After it: claims
for the executor. A look that came back full is followed by another; one that found all there is
lets the process fall asleep, look once more, and wait for a notice. The poll is the net.
"""

from __future__ import annotations

from collections.abc import Callable

from shared.errors import WeirkeeperError
from shared.jobs.work import Claim, Cut, Work
from workers.assignment import Assignment

ASLEEP_POLL = 1.0  # seconds; every writer notifies, so this is only the net
DOZING_POLL = 0.1  # seconds; a writer that was silent may still be open


class Producer:
    """Claims for one queue.

    Attributes:
        last_claim: when anything was claimed last.
        resting: nothing is claimed for now, because others asked for it.

    Args:
        assignment: what this process is there for.
    """

    def __init__(self, assignment: Assignment) -> None:
        self._queue = assignment.name
        self._kinds = sorted(assignment.kinds)
        self._poll = min(assignment.queue.poll, DOZING_POLL)
        self._instruments = assignment.instruments
        self._clock = assignment.clock
        self._stopped = False
        self.resting = False
        self._trigger = "poll"
        self._was_full = False
        self._asleep = False
        self._poll_at = self._try_sleep_at = 0.0
        self.last_claim = self._clock.monotonic()
        self.cut = Cut()  # which limits kept the last claim from more

    def stop(self) -> None:
        """Claim nothing from now on. From any thread."""
        self._stopped = True

    def rest(self, *, resting: bool) -> None:
        """Claim nothing for now, or again; in the database's thread."""
        self.resting = resting
        if not resting:
            self.last_claim = self._clock.monotonic()
            self.look("wake")

    @property
    def excused(self) -> bool:
        """Whether there is a reason to claim nothing, whatever waits."""
        return self._stopped or self.resting or self.cut.capped

    def connected(self) -> None:
        """Sessions were opened: nothing is held, everything must be looked at."""
        self._asleep = self._was_full = False
        self._trigger = "poll"
        self._try_sleep_at = 0.0

    def look(self, trigger: str) -> None:
        """There may be something to claim."""
        self._trigger = self._trigger or trigger

    def ended(self) -> None:
        """Jobs of this process ended: where a cap was reached, there may be more."""
        if self.cut.capped:
            self.look("free")

    def turn(
        self, work: Work, room: int, hand_over: Callable[[list[Claim]], None] = lambda _: None
    ) -> list[Claim]:
        """Claim, if there may be something and there is room for it; else sleep.

        Args:
            work: what is claimed from.
            room: for how many.
            hand_over: takes the claims at once; what is to be counted and judged comes after it.

        Raises:
            WeirkeeperError: as of Work.claim.
        """
        if self._stopped:
            return []
        if self._clock.monotonic() >= self._poll_at:
            self.look("poll")
        if not self._trigger:
            return []
        if room < 1 or self.resting:
            self._wake_up(work)
            return []
        claims = self._claim(work, room, hand_over)
        self._judge(work, len(claims), room)
        work.tidy()
        return claims

    def waits(self, room: int) -> float:
        """Seconds that nothing need be looked at, unless a wake comes."""
        if self._stopped or self.resting or room < 1:
            return ASLEEP_POLL
        return 0.0 if self._trigger else max(0.0, self._poll_at - self._clock.monotonic())

    def _claim(
        self, work: Work, room: int, hand_over: Callable[[list[Claim]], None]
    ) -> list[Claim]:
        begun, trigger = self._clock.monotonic(), self._trigger
        counted = self._instruments.claims_total
        self._trigger = ""  # what is looked for from now on is looked for once more
        try:
            claims = work.claim(self._kinds, room)
        except WeirkeeperError:
            self.look(trigger)
            counted.labels(self._queue, trigger, "error").inc()
            raise
        ended = self._clock.monotonic()
        if claims:
            try:
                hand_over(claims)
            except WeirkeeperError:  # of an end that was written meanwhile: nothing was judged
                self.look(trigger)
                raise
        found, self.cut = len(claims), work.cut
        result = "full" if found >= room else "short" if found else "empty"
        counted.labels(self._queue, trigger, result).inc()
        self._instruments.claim_seconds.labels(self._queue).observe(ended - begun)
        self._instruments.claim_batch_size.labels(self._queue).observe(found)
        if found:
            self._instruments.jobs_claimed_total.labels(self._queue).inc(found)
            self._instruments.lease_attempts_total.labels("job", "granted").inc(found)
        if found or self.cut.unfinished:  # what is parked gets on, too
            self.last_claim = self._clock.monotonic()
        return claims

    def _judge(self, work: Work, found: int, room: int) -> None:
        """Decide whether another look is due, or whether to sleep."""
        now = self._clock.monotonic()
        full = found >= room
        # The look after a full one starts where that ended; only the next sees everything again.
        again = full or bool(found and self._was_full) or self.cut.unfinished
        self._was_full = full
        if again:
            self.look("full")
            self._wake_up(work)
        elif not self._asleep and now >= self._try_sleep_at:
            self._asleep = work.fall_asleep()
            self._try_sleep_at = now + self._poll
            self.look("wake")  # what was written before the lock was had
        self._poll_at = now + (ASLEEP_POLL if self._asleep else self._poll)
        if self.cut.opens is not None:
            self._poll_at = min(self._poll_at, now + self.cut.opens)

    def _wake_up(self, work: Work) -> None:
        if self._asleep:
            work.wake_up()
            self._asleep = False
            self._try_sleep_at = 0.0
