"""Judging how the job of a foreign program ended: its word, or what is known of its death. Pure.

As `ends` for our own children, but no word of a program is believed: what it may not say, at this
moment, is a failed attempt that tells so.
"""

from __future__ import annotations

import signal
from typing import Any

from shared.jobs.failures import clean
from workers.pool.chunk import End, Job
from workers.pool.lines import ProtocolError, Told, answer
from workers.pool.program import Program
from workers.pool.watch import CPU, MEMORY

PROTOCOL = "protocol"  # cause of an attempt that failed because its program did
_OWN_WORD = ("completed", "snoozed", "discarded")
_ASKED = ("timeout", "interrupted", "cancelled", CPU)
_OUTCOMES = {CPU: "timeout"}  # of a reason, where it is not the same word


def told(program: Program, job: Job, said: Told, now: float) -> End:
    """The end that a program told of.

    Raises:
        ProtocolError: it may not end so.
    """
    if program.reason in _ASKED and said.outcome not in _OWN_WORD:
        return _stopped(program, job, said.stack, now)
    evidence: dict[str, Any]
    if said.outcome == "stopped":
        raise ProtocolError("a job that is stopped, but was not asked to stop")
    if said.outcome == "away":  # what it means is for the kind to say: workers.verdicts
        error = clean(said.error or "away, without a word what")
        evidence = {"stack": said.stack} if said.stack else {}
        return _end(program, job, now, outcome="snoozed", error=error, evidence=evidence)
    judged = answer(said, job.kind)
    evidence = {"stack": said.stack} if said.stack else {}
    if judged.outcome == "failed":
        evidence |= program.evidence()
    return _end(
        program,
        job,
        now,
        outcome=judged.outcome,
        result=judged.result,
        error=judged.error,
        cause="exception" if judged.outcome == "failed" else None,
        delay=judged.delay,
        evidence=evidence,
    )


def died(program: Program, job: Job, code: int, now: float, *, lost: bool) -> End:
    """The end of a job whose program is dead."""
    if lost:
        error = "the fork server died, and all children with it"
        return _end(program, job, now, outcome="lost", error=error, cause="pool_lost")
    if program.reason in _ASKED:
        return _stopped(program, job, None, now)
    evidence = program.evidence()
    if program.fault or not (code or program.reason):
        fault = program.fault or "ended (exit code 0) without an outcome"
        error = f"{program.command.argv[0]}: {fault}"
        return _end(
            program, job, now, outcome="failed", error=error, cause=PROTOCOL, evidence=evidence
        )
    death = code < 0 and not program.reason
    if program.reason == MEMORY:
        used = evidence.get("max_rss_mib")
        error, cause = f"killed: it used more memory than its kind may, {used} MiB,", MEMORY
    elif code < 0:
        name = _signal(code)
        error, cause, evidence["signal"] = f"died by signal {-code} ({name})", name, name
    else:
        error, cause, evidence["exit_code"] = f"exited with code {code}", "exit", code
    error = f"{program.command.argv[0]}: {error} before an outcome"
    return _end(
        program,
        job,
        now,
        outcome="crashed",
        error=error,
        cause=cause,
        evidence=evidence,
        death=death,
    )


def _stopped(program: Program, job: Job, stack: str | None, now: float) -> End:
    error = {
        "timeout": f"ran longer than its timeout of {job.timeout:g} s",
        "cancelled": "cancelled by hand while it ran",
        CPU: f"used more CPU time than its kind may: {program.evidence().get('cpu_seconds')} s",
    }.get(program.reason, "interrupted: the process stops")
    evidence = program.evidence() | ({"stack": stack} if stack else {})
    return _end(
        program,
        job,
        now,
        outcome=_OUTCOMES.get(program.reason, program.reason),
        error=error,
        cause=program.reason,
        evidence=evidence,
    )


def _end(program: Program, job: Job, now: float, **fields: Any) -> End:
    seconds = now - program.started
    return End(key=job.job_id, started_at=program.started_at, seconds=seconds, **fields)


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
