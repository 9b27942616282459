"""One turn of the relay: a pass, and what to do when some row of it cannot be fanned out.

Stands between relay.service (when to look) and the port Outbox (what a pass does). Decides who is
at fault: a batch that fails because of its values is taken again row by row, each in its own
transaction; the failing row leaves the line, with a next try of its own, so that a poison head
never blocks. It must never touch the network, sleep, or skip a row without a record of why.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from relay.tally import Tally
from shared.backoff import FAILING_PASS, Backoff, jittered
from shared.clock import SYSTEM
from shared.errors import (
    InvalidArguments,
    UnknownEventType,
    UnknownKind,
    ValuesRefused,
    WeirkeeperError,
)
from shared.events.outbox import BATCH, NOTHING, FannedOut, Outbox
from shared.failpoints import fp

RETRIES = 20  # events set aside that one turn tries, so that they never hold up the healthy ones

# What blames a row: the last three come from an application's trigger that calls our functions.
BLAMED = (ValuesRefused, InvalidArguments, UnknownKind, UnknownEventType)

log = logging.getLogger(__name__)


class RelayPass:
    """Fans out what is pending.

    Args:
        outbox: where events wait.
        tally: where passes and failures are counted.
        backoff: seconds between the tries of one event.
    """

    def __init__(self, outbox: Outbox, tally: Tally, backoff: Backoff = FAILING_PASS) -> None:
        self._outbox = outbox
        self._tally = tally
        self._backoff = backoff

    def turn(self) -> FannedOut:
        """Do one pass, announce it, and try what was set aside and is due.

        Raises:
            DatabaseUnavailable: nothing of the pass under way has happened; try again later.
            DatabaseRefused: likewise, but something is wrong that no row is to blame for.
        """
        self._tally.turning()
        began = SYSTEM.monotonic()
        try:
            done = self._turn()
        except WeirkeeperError:
            self._tally.broke()
            raise
        self._tally.passed(done, SYSTEM.monotonic() - began)
        return done

    def _turn(self) -> FannedOut:
        done = self._pass()
        fp("relay_passed")
        self._outbox.announce(done.announcements)
        fp("relay_announced")
        if done.retries_due and not done.full:
            done += self._try_again()
        return done

    def _pass(self) -> FannedOut:
        try:
            return self._outbox.next_pass()
        except BLAMED as error:
            log.warning("a pass failed, its rows are taken one by one: %s", error)
            return self._row_by_row()

    def _row_by_row(self) -> FannedOut:
        done, seqs = NOTHING, self._outbox.pending()
        for seq in seqs:
            try:
                done += self._outbox.fan_out_row(seq)
            except BLAMED as error:
                log.warning("an event's fan-out failed, it is set aside: %s", error)
                self._outbox.set_aside(seq, str(error), jittered(self._backoff.delay(1)))
                self._tally.failed(poisoned=False)
        return replace(done, full=len(seqs) >= BATCH)

    def _try_again(self) -> FannedOut:
        done = NOTHING
        for event_id, failures in self._outbox.due(RETRIES):
            try:
                done += self._outbox.fan_out_again(event_id)
            except BLAMED as error:
                self._count(event_id, failures, str(error))
        self._outbox.announce(done.announcements)
        return done

    def _count(self, event_id: str, failures: int, error: str) -> None:
        delay = jittered(self._backoff.delay(failures + 1))
        poisoned = self._outbox.failed_again(event_id, failures, error, delay)
        self._tally.failed(poisoned=poisoned)
        if poisoned:
            log.error("event %s is poisoned after %d failures: %s", event_id, failures + 1, error)
