"""Why a job stands where it stands: one plain sentence, made from facts. Pure.

Before this: an adapter of Inspector, which gathers the facts of the place where the job is. After
it: whoever asked. Every place and every reason has its own sentence here, and nowhere else.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from shared.jobs.inspect import Explanation
from shared.jobs.outages import CAUSE as OUTAGE

READY, SCHEDULED, PARKED, RUNNING, ENDED = "ready", "scheduled", "parked", "running", "ended"
_WAITING = (READY, SCHEDULED, PARKED)
MANY = 1000  # jobs ahead in line are counted to this

Facts = Mapping[str, Any]


class Reason(NamedTuple):
    """A sentence, what the job waits for in a word, and until when."""

    sentence: str
    waits_for: str | None = None
    until: str | None = None


def explain(facts: Facts) -> Explanation:
    """Explain one job.

    Args:
        facts: `where`, `state`, and what is known of that place; moments are ISO 8601 text. Those
            that are None are left out of what is told.
            Always: kind, queue, attempt (tries spent), max_attempts, expires_at, expired (whether
            that has passed; None = there is none, or it was tried, which overrules it),
            queue_paused_at, kind_paused_at, quarantine (why), processes (alive, that know the
            kind), children (that they have), busy, cap (of the queue), rate_n, rate_seconds,
            rate_opens_at (when no more may start now); command, if one runs the kind.
            ready: ready_at, lies_in (another queue, where its kind was before), ahead (without
            those of paused kinds), fair (owners take turns: without those of other owners).
            scheduled: run_at, why, due; error, cause and evidence of the last run.
            parked: key, max_n, holders, holder (a job), open_at (only when it is to come), closed
            (True = until it is enabled).
            running: slot, host, pid, owner (alive, draining, lost), claimed_at, started_at,
            deadline, cancel_requested_at, progress (for people). ended: outcome, cause, error,
            started_at, ended_at.
    """
    reason = _PLACES[facts["where"]](facts)
    if facts["where"] in _WAITING and facts.get("expired") is not None:
        reason = _expiring(facts, reason)
    told = {name: value for name, value in facts.items() if value is not None}
    return Explanation(
        sentence=" ".join(reason.sentence.split()),
        state=facts["state"],
        where=facts["where"],
        waits_for=reason.waits_for,
        until=reason.until,
        facts=told,
    )


def _ready(facts: Facts) -> Reason:
    line = f"It has been in line on queue {facts['queue']} since {facts['ready_at']}"
    held_up = _held_up(facts) or _astray(facts) or _limited(facts, line)
    if held_up:
        return held_up
    ahead, busy, children = facts["ahead"], facts["busy"], facts["children"]
    if not ahead and busy < children and not facts.get("fair"):
        return Reason(f"{line}; it is next, and a child is free for it.", "a child")
    before = f"{ahead} or more" if ahead >= MANY else str(ahead)
    jobs = "job is" if ahead == 1 else "jobs are"
    others = (
        f", not counting other owners of kind {facts['kind']}, who take turns,"
        if facts.get("fair")
        else ","
    )
    return Reason(
        f"{line}: {before} {jobs} before it{others} and {busy} of {children} children are busy.",
        "a child",
    )


def _expiring(facts: Facts, reason: Reason) -> Reason:
    """A job that is to start by a moment."""
    at = facts["expires_at"]
    if not facts["expired"]:
        told = f"{reason.sentence} If it has not started by {at}, it is discarded."
        return reason._replace(sentence=told)
    nobody = "" if facts["processes"] else "; none that knows its kind is running"
    return Reason(
        f"It expired at {at}, before it was tried: a process of queue {facts['queue']} discards it "
        f"at its next look{nobody}.",
        "its end",
    )


def _held_up(facts: Facts) -> Reason | None:
    """What would keep a job from being claimed, whenever its time comes."""
    paused = [what for what in ("queue", "kind") if facts[f"{what}_paused_at"]]
    if paused:
        why = " and ".join(_paused(facts, what) for what in paused)
        resume = " and ".join(f"`weirkeeper resume --{what} {facts[what]}`" for what in paused)
        lets = "lets" if len(paused) == 1 else "let"
        return Reason(f"It waits because {why}; {resume} {lets} it run.", "resume")
    if not facts["processes"]:
        return Reason(
            f"It waits for a process: none of queue {facts['queue']} that knows kind "
            f"{facts['kind']} is running.",
            "a process",
        )
    return None


def _astray(facts: Facts) -> Reason | None:
    """A job that stood in line when its kind was moved to another queue."""
    if not facts.get("lies_in"):
        return None
    return Reason(
        f"It lies in queue {facts['lies_in']}, where kind {facts['kind']} was declared before: a "
        f"process of queue {facts['queue']} brings it over within seconds.",
        "its queue",
    )


def _paused(facts: Facts, what: str) -> str:
    name, since = facts[what], facts[f"{what}_paused_at"]
    if what == "kind" and facts.get("quarantine"):
        return f"kind {name} has been quarantined since {since} ({facts['quarantine']})"
    return f"{what} {name} has been paused since {since}"


def _limited(facts: Facts, line: str) -> Reason | None:
    """What keeps a job that is next from being claimed now."""
    opens = facts["rate_opens_at"]
    if opens:
        return Reason(
            f"{line}: {facts['rate_n']} jobs of kind {facts['kind']} may start within "
            f"{facts['rate_seconds']:g} s, and have; the next may at {opens}.",
            "rate",
            opens,
        )
    if facts["cap"] and facts["busy"] >= facts["cap"]:
        return Reason(
            f"{line}: {facts['cap']} jobs of the queue may run at once, and do.",
            "cap",
        )
    return None


def _scheduled(facts: Facts) -> Reason:
    until = facts["run_at"]
    return Reason(f"{_later(facts)}.{_but(facts)}", _WAITS[facts["why"]], until)


_WAITS = {"delay": "time", "retry": "retry", "snooze": "snooze"}


def _later(facts: Facts) -> str:
    until, tries = facts["run_at"], f"{facts['attempt']} of {facts['max_attempts']}"
    when = f"has been due since {until}" if facts["due"] else f"runs at {until}"
    if facts["why"] == "delay":
        return f"It was enqueued for later: it {when}"
    if facts["why"] == "snooze" and facts.get("cause") == OUTAGE:
        why = f" ({facts['error']})" if facts["error"] else ""
        return f"What it depends on is away{why}, which spends no attempt: it {when}"
    if facts["why"] == "snooze":
        return f"Its handler asked for another run later, which spends no attempt: it {when}"
    why = "; ".join(str(facts[name]) for name in ("error", "evidence") if facts.get(name))
    why = f" ({why})" if why else ""
    return f"Attempt {tries} failed{why}: the next {when}"


def _but(facts: Facts) -> str:
    held_up = _held_up(facts)
    return (
        ""
        if held_up is None
        else f" Even then: {held_up.sentence[0].lower()}{held_up.sentence[1:]}"
    )


def _parked(facts: Facts) -> Reason:
    key, until = facts["key"], facts["open_at"]
    if until or facts["closed"]:
        when = until or "it is enabled"
        return Reason(f"It waits for its concurrency key {key}, closed until {when}.", "key", until)
    held = f"held by job {facts['holder']}" if facts["holder"] else "which nobody holds"
    return Reason(
        f"It waits for its concurrency key {key}, {held} ({facts['holders']} of at most "
        f"{facts['max_n']}).{_but(facts)}",
        "key",
    )


def _running(facts: Facts) -> Reason:
    by = f"process {facts['slot']} (pid {facts['pid']} on {facts['host']})"
    if facts["owner"] == "lost":
        who = by if facts["slot"] else "the process that claimed it"
        return Reason(
            f"It runs nowhere: {who} is gone, and another process takes the job back within "
            "seconds.",
            "rescue",
        )
    if facts["cancel_requested_at"]:
        return Reason(
            f"Its end was asked for at {facts['cancel_requested_at']}: {by} is stopping it.",
            "its end",
        )
    leaving = ", which is draining" if facts["owner"] == "draining" else ""
    if not facts["started_at"]:
        return Reason(
            f"It was claimed at {facts['claimed_at']} by {by}{leaving}; a child begins it as soon "
            "as one is free.",
            "a child",
        )
    done = f" ({facts['progress']} done)" if facts.get("progress") else ""
    return Reason(
        f"It has been running since {facts['started_at']} on {by}{leaving}{_in(facts)}, "
        f"attempt {facts['attempt'] + 1} of {facts['max_attempts']}{done}, "
        f"until {facts['deadline']} at most.",
        "its end",
        facts["deadline"],
    )


def _in(facts: Facts) -> str:
    """What runs it, when that is not a handler in a child of ours."""
    command = facts.get("command")
    return f", in command {shlex.join(command)}" if command else ""


def _ended(facts: Facts) -> Reason:
    return Reason(f"{_ENDS[facts['state']](facts)}.")


def _completed(facts: Facts) -> str:
    return (
        f"It completed at {facts['ended_at']}, on attempt {facts['attempt']} of "
        f"{facts['max_attempts']}"
    )


def _discarded(facts: Facts) -> str:
    why = f": {facts['error']}" if facts["error"] else ""
    why += f" ({facts['evidence']})" if facts.get("evidence") else ""
    at, outcome = facts["ended_at"], facts["outcome"]
    if outcome == "discarded":
        return f"It was discarded at {at} and is not tried again{why}"
    how = {
        "timeout": "ran into its timeout",
        "crashed": "ended with its child",
        "rescued": "was lost with its process",
    }.get(outcome, "failed")
    return f"It was discarded at {at}: the last of {facts['attempt']} attempts {how}{why}"


def _cancelled(facts: Facts) -> str:
    tries = facts["attempt"]
    if facts["started_at"]:
        when = "while it ran"
    elif tries:
        when = f"while it waited, after {tries} of {facts['max_attempts']} attempts"
    else:
        when = "before it began"
    return f"It was cancelled by hand at {facts['ended_at']}, {when}"


_ENDS: Mapping[str, Callable[[Facts], str]] = {
    "completed": _completed,
    "discarded": _discarded,
    "cancelled": _cancelled,
}
_PLACES: Mapping[str, Callable[[Facts], Reason]] = {
    READY: _ready,
    SCHEDULED: _scheduled,
    PARKED: _parked,
    RUNNING: _running,
    ENDED: _ended,
}
