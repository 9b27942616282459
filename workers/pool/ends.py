"""Judging how a job ended: the child's word, or what is known of the child's death. Pure."""

from __future__ import annotations

import signal
from typing import NamedTuple

from workers.pool.chunk import End, Job
from workers.pool.messages import Outcome
from workers.pool.slot import Slot

# A child that was asked to stop and ends its job in one of these ways has really ended it.
_OWN_WORD = ("completed", "snoozed", "discarded")
_ASKED = ("timeout", "interrupted", "cancelled")


class Time(NamedTuple):
    """When a run began (seconds since 1970), and how long it took."""

    started_at: float
    seconds: float


def told(slot: Slot, job: Job, outcome: Outcome, run: Time) -> End:
    """The end that a child told of.

    A job that was asked to stop, and did, ended by why it was asked; one that completed all the
    same, within the grace, is completed.
    """
    stopped = outcome.outcome == "stopped" or (
        slot.asked == outcome.index and outcome.outcome not in _OWN_WORD
    )
    if stopped:
        return _stopped(slot, job, outcome.stack, run)
    return End(
        key=job.job_id,
        outcome=outcome.outcome,
        started_at=run.started_at,
        seconds=run.seconds,
        result=bytes(outcome.result).decode() or None,
        error=outcome.error,
        cause="exception" if outcome.outcome == "failed" else None,
        delay=outcome.delay,
        evidence={"stack": outcome.stack} if outcome.stack else {},
    )


def died(slot: Slot, job: Job, code: int, lost: bool, run: Time) -> End:
    """The end of the job that ran in a child when it died."""
    if lost:
        return End(
            key=job.job_id,
            outcome="lost",
            started_at=run.started_at,
            seconds=run.seconds,
            error="the fork server died, and all children with it",
            cause="pool_lost",
        )
    if slot.reason in _ASKED:
        return _stopped(slot, job, None, run)
    return End(
        key=job.job_id,
        outcome="crashed",
        started_at=run.started_at,
        seconds=run.seconds,
        error=_epitaph(code, slot.reason),
        cause=_signal(code) or slot.reason or "exit",
        evidence={"signal": _signal(code)} if code < 0 else {"exit_code": code},
    )


def too_long(job: Job, error: Exception, wall: float) -> End:
    """The end of a job that the kernel will not carry to a child."""
    return End(
        key=job.job_id,
        outcome="discarded",
        started_at=wall,
        seconds=0.0,
        error=f"job: expected a message that the kernel carries; got {error}; "
        "raise net.core.wmem_max or pass less in args",
        cause="too_long",
    )


def cause_of_death(code: int, reason: str) -> str:
    """Why a child ended, in a word of a closed set."""
    if reason:
        return "killed"
    if code < 0:
        return "signal"
    return "exit" if code else "left"


def _stopped(slot: Slot, job: Job, stack: str | None, run: Time) -> End:
    error = {
        "timeout": f"ran longer than its timeout of {job.timeout:g} s",
        "cancelled": "cancelled by hand while it ran",
    }.get(slot.reason, "interrupted: the process stops")
    evidence = slot.evidence()
    if stack:
        evidence["stack"] = stack
    return End(
        key=job.job_id,
        outcome=slot.reason or "interrupted",
        started_at=run.started_at,
        seconds=run.seconds,
        error=error,
        cause=slot.reason,
        evidence=evidence,
    )


def _epitaph(code: int, reason: str) -> str:
    if reason:
        return f"child killed: {reason}"
    if code < 0:
        return f"child died by signal {-code} ({_signal(code)})"
    return f"child exited with code {code}"


def _signal(code: int) -> str | None:
    if code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
