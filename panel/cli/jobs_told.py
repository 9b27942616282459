"""How jobs are shown to people: lists, one job with its log, an explanation, an overview.

Used by `weirkeeper jobs`; gets what operations return, gives lines of text.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from panel.cli.output import state_style
from panel.cli.terminal import Column, clean, here
from shared.clock import SYSTEM
from shared.jobs.evidence import brief
from shared.jobs.inspect import Attempt, Explanation, Job, Overview, PeriodicStatus
from shared.jobs.states import STATES

LIST = (
    Column("id", right=True),
    Column("kind", gives=True),
    Column("queue", gives=True),
    Column("state", style=state_style),
    Column("attempt", right=True),
    Column("age", right=True),
    Column("next try", right=True),
)
ATTEMPTS = (
    Column("run", right=True),
    Column("outcome", style=state_style),
    Column("started", right=True),
    Column("took", right=True),
    Column("cause"),
    Column("error", gives=True),
)
PERIODIC = (
    Column("name", gives=True),
    Column("kind", gives=True),
    Column("schedule", gives=True),
    Column("next in", right=True),
    Column("last", right=True),
    Column("result", style=state_style),
    Column("error", gives=True),
)
OVERVIEW = (
    Column("kind", gives=True),
    Column("queue", gives=True),
    *(Column(state, right=True) for state in STATES),
    Column("oldest", right=True),
    Column("paused", style=lambda text: "yellow" if text == "yes" else ""),
)


def listed(jobs: Iterable[Job]) -> str:
    """A table of jobs."""
    return here().table(LIST, [_row(job) for job in jobs])


def overviewed(kinds: Sequence[Overview]) -> str:
    """A table of kinds."""
    rows = [
        (
            one.kind,
            one.queue,
            *(one.counts[state] or None for state in STATES),
            None if one.oldest_pending_age is None else span(one.oldest_pending_age),
            "yes" if one.paused else None,
        )
        for one in kinds
    ]
    return here().table(OVERVIEW, rows)


def periodics(found: Sequence[PeriodicStatus]) -> str:
    """A table of periodic jobs."""
    rows = [
        (
            one.name,
            one.kind,
            one.schedule,
            None if one.next_at is None else until(one.next_at),
            None if one.last_started_at is None else since(one.last_started_at),
            one.last_result,
            one.last_error,
        )
        for one in found
    ]
    return here().table(PERIODIC, rows)


def explained(found: Explanation) -> str:
    """The sentence, then the facts."""
    shown = {k: v for k, v in found.facts.items() if k not in ("where", "state")}
    if "command" in shown:
        shown["command"] = shlex.join(shown["command"])
    lines = [clean(found.sentence), "", *facts_told([("state", found.state), *shown.items()])]
    return "\n".join(lines)


def told(job: Job) -> str:
    """One job with everything."""
    facts = [
        ("job", job.id),
        ("kind", f"{job.kind} on queue {job.queue}, priority {job.priority}"),
        ("state", job.state),
        ("attempts", f"{job.attempt} of {job.max_attempts}"),
        ("created", f"{job.created_at} ({since(job.created_at)} ago)"),
        ("args", json.dumps(job.args, ensure_ascii=False)),
    ]
    if job.command:
        facts.append(("command", shlex.join(job.command)))
    if job.owner_id is not None:
        facts.append(("owner", job.owner_id))
    if job.tags:
        facts.append(("tags", ", ".join(job.tags)))
    if job.progress is not None:
        facts.append(("progress", str(job.progress)))
    if job.scheduled_at:
        facts.append(("next try", f"{job.scheduled_at} (in {until(job.scheduled_at)})"))
    if job.result is not None:
        facts.append(("result", json.dumps(job.result, ensure_ascii=False)))
    lines = facts_told(facts)
    if job.attempts:
        rows = [
            (
                a.run,
                a.outcome,
                None if a.started_at is None else a.started_at[11:19],
                _took(a.started_at, a.finished_at),
                a.cause,
                a.error,
            )
            for a in job.attempts
        ]
        lines += ["", here().table(ATTEMPTS, rows), *_last_error(job.attempts)]
    return "\n".join(lines)


def _last_error(attempts: Sequence[Attempt]) -> list[str]:
    """What the newest failed attempt said, whole, and where: what one came for."""
    failed = [a for a in attempts if a.error]
    if not failed:
        return []
    newest = max(failed, key=lambda a: a.run)
    stack = str(newest.evidence.get("stack") or newest.evidence.get("stacks") or "")
    seen = brief(newest.evidence)
    lines = [
        *str(newest.error).splitlines(),
        *([f"({seen})"] if seen else []),
        *stack.splitlines(),
    ]
    title = here().paint(f"error of run {newest.run}, {newest.finished_at}", "bold")
    return ["", title, *(_indented(line) for line in lines)]


def _indented(line: str) -> str:
    """A line of a traceback, without control characters but with its indentation."""
    text = line.lstrip()
    return "  " + " " * (len(line) - len(text)) + (clean(text) if text else "")


def unread(jobs: Iterable[Job]) -> list[dict[str, Any]]:
    """Jobs of a list for programs, without the fields that a list never reads."""
    skipped = ("args", "attempts", "result", "command")
    return [{k: v for k, v in msgspec.to_builtins(j).items() if k not in skipped} for j in jobs]


def facts_told(facts: Iterable[tuple[str, object]]) -> list[str]:
    """One fact a line; the state in its colour."""
    terminal = here()
    pairs = [(name.replace("_", " "), clean(value)) for name, value in facts]
    width = max(len(name) for name, _ in pairs) + 2
    return [
        terminal.paint(f"{name:<{width}}", "bold")
        + (terminal.paint(value, state_style(value)) if name == "state" else value)
        for name, value in pairs
    ]


def _row(job: Job) -> tuple[object, ...]:
    return (
        job.id,
        job.kind,
        job.queue,
        job.state,
        f"{job.attempt}/{job.max_attempts}",
        since(job.created_at),
        until(job.scheduled_at),
    )


def since(moment: str) -> str:
    """How long ago a moment was."""
    return span((SYSTEM.wall() - datetime.fromisoformat(moment)).total_seconds())


def until(moment: str | None) -> str:
    """How long it is until a moment."""
    if moment is None:
        return "-"
    return span((datetime.fromisoformat(moment) - SYSTEM.wall()).total_seconds())


def _took(started: str | None, finished: str) -> str:
    if started is None:
        return "-"
    took = datetime.fromisoformat(finished) - datetime.fromisoformat(started)
    return f"{took.total_seconds() * 1000:,.0f} ms"


def span(seconds: float) -> str:
    """Two units at most: "3 d 4 h", "12 min", "5 s"."""
    left = max(0, round(seconds))
    for size, unit, smaller, name in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if left >= size:
            rest = left % size // smaller
            return f"{left // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{left} s"
