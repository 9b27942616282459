"""Judging how a job ended: the child's word, or what is known of the child's death. Pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any, NamedTuple

from workers.pool.chunk import End, Job
from workers.pool.messages import Outcome
from workers.pool.slot import Slot
from workers.pool.watch import CPU, MEMORY

# A child that was asked to stop and ends its job in one of these ways has really ended it.
_OWN_WORD = ("completed", "snoozed", "discarded")
_ASKED = ("timeout", "interrupted", "cancelled", CPU)
_OUTCOMES = {CPU: "timeout"}  # of a reason, where it is not the same word


class Time(NamedTuple):
    """When a run began (seconds since 1970), and how long it took."""

    started_at: float
    seconds: float


class Death(NamedTuple):
    """How a child died.

    Attributes:
        code: its exit code.
        lost: it died with its fork server.
        out_of_memory: the kernel killed it for want of memory.
    """

    code: int
    lost: bool = False
    out_of_memory: bool = False


def told(slot: Slot, job: Job, outcome: Outcome, run: Time) -> End:
    """The end that a child told of.

    A job that was asked to stop, and did, ended by why it was asked; one that completed all the
    same, within the grace, is completed.
    """
    stopped = outcome.outcome == "stopped" or (
        slot.asked == outcome.index and outcome.outcome not in _OWN_WORD
    )
    evidence = _evidence(slot, outcome)
    if stopped:
        return _stopped(slot, job, run, evidence)
    return End(
        key=job.job_id,
        outcome=outcome.outcome,
        started_at=run.started_at,
        seconds=run.seconds,
        result=bytes(outcome.result).decode() or None,
        error=outcome.error,
        cause="exception" if outcome.outcome == "failed" else None,
        delay=outcome.delay,
        evidence=evidence,
        outside=outcome.outside,
    )


def _evidence(slot: Slot, outcome: Outcome) -> dict[str, Any]:
    """Of a run that the child told of: its own report is nearer than our last sample."""
    if outcome.used is None:
        return {"stack": outcome.stack} if outcome.stack else {}
    cpu, peak = outcome.used
    found = slot.seen(outcome.index)
    found |= {"cpu_seconds": round(cpu, 2), "max_rss_mib": round(peak, 1)}
    return found | ({"stack": outcome.stack} if outcome.stack else {})


def died(slot: Slot, job: Job, death: Death, run: Time, seen: Mapping[str, Any]) -> End:
    """The end of the job that ran in a child when it died."""
    if death.lost:
        return End(
            key=job.job_id,
            outcome="lost",
            started_at=run.started_at,
            seconds=run.seconds,
            error="the fork server died, and all children with it",
            cause="pool_lost",
        )
    if slot.reason in _ASKED:
        return _stopped(slot, job, run, seen)
    code, killed = death.code, slot.reason
    how: dict[str, Any] = {"signal": _signal(code)} if code < 0 else {"exit_code": code}
    if death.out_of_memory:
        how["out_of_memory"] = True
    cause = "out_of_memory" if death.out_of_memory else _signal(code) or "exit"
    return End(
        key=job.job_id,
        outcome="crashed",
        started_at=run.started_at,
        seconds=run.seconds,
        error=_epitaph(death, killed, seen),
        cause=killed or cause,
        evidence={**seen, **how},
        death=not killed,
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


def _stopped(slot: Slot, job: Job, run: Time, evidence: Mapping[str, Any]) -> End:
    error = {
        "timeout": f"ran longer than its timeout of {job.timeout:g} s",
        "cancelled": "cancelled by hand while it ran",
        CPU: f"used more CPU time than its kind may: {evidence.get('cpu_seconds', '?')} s",
    }.get(slot.reason, "interrupted: the process stops")
    return End(
        key=job.job_id,
        outcome=_OUTCOMES.get(slot.reason, slot.reason or "interrupted"),
        started_at=run.started_at,
        seconds=run.seconds,
        error=error,
        cause=slot.reason,
        evidence={**evidence, **slot.stacks()},
    )


def _epitaph(death: Death, reason: str, seen: Mapping[str, Any]) -> str:
    code = death.code
    if reason == MEMORY:
        return f"child killed: it used more memory than its kind may, {seen.get('max_rss_mib')} MiB"
    if reason:
        return f"child killed: {reason}"
    if death.out_of_memory:
        return f"child killed by the kernel, out of memory (signal {-code})"
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
