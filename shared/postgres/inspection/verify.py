"""ADAPTER: do the rows keep the engine's promises? Each rule returns rows only where one is broken.

Called by `weirkeeper verify`, daily by a handler, and after every test that kills. No rule needs
anything to stand still: each is one statement and sees one moment. A mend goes the safe way (a job
is rather run twice than never, an event rather told twice), judges anew before it writes, and says
what it did. What has no safe mend is only told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, LiteralString

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.queues.rescues import rescue

SHOWN = 1000  # violations of one rule at most; after a mend the next are found


@dataclass(frozen=True, slots=True)
class Violation:
    """One promise that is broken. `subject` is a job, an event or a kind, as `rule` says."""

    rule: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Mended:
    """What was done about one."""

    rule: str
    subject: str
    done: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A promise: what breaks it, and what mends that (None: nothing that is safe)."""

    name: str
    broken: LiteralString
    mend: LiteralString | None = None


@cache
def rules() -> tuple[Rule, ...]:
    """Every promise, in the order in which they are mended."""
    return (
        Rule(
            "row_without_job",
            statement("verify/row_without_job"),
            statement("verify/mend_row_without_job"),
        ),
        Rule("job_twice", statement("verify/job_twice"), statement("verify/mend_job_twice")),
        Rule(
            "ended_but_waits",
            statement("verify/ended_but_waits"),
            statement("verify/mend_ended_but_waits"),
        ),
        Rule("job_nowhere", statement("verify/job_nowhere"), statement("verify/mend_job_nowhere")),
        Rule("row_astray", statement("verify/row_astray"), statement("verify/mend_row_astray")),
        Rule("unique_kept", statement("verify/unique_kept"), statement("verify/mend_unique_kept")),
        Rule("unique_lost", statement("verify/unique_lost"), statement("verify/mend_unique_lost")),
        Rule("expiry_lost", statement("verify/expiry_lost"), statement("verify/mend_expiry_lost")),
        Rule("running_without_owner", statement("verify/running_without_owner")),
        Rule(
            "running_unheld",
            statement("verify/running_unheld"),
            statement("verify/mend_running_unheld"),
        ),
        Rule(
            "parked_without_key",
            statement("verify/parked_without_key"),
            statement("verify/mend_parked_without_key"),
        ),
        Rule(
            "parked_though_free",
            statement("verify/parked_though_free"),
            statement("verify/mend_parked_though_free"),
        ),
        Rule("event_lost", statement("verify/event_lost"), statement("verify/mend_event_lost")),
        Rule("fanout_without_job", statement("verify/fanout_without_job")),
        Rule(
            "event_unheard",
            statement("verify/event_unheard"),
            statement("verify/mend_event_unheard"),
        ),
        Rule("event_twice", statement("verify/event_twice")),
        Rule(
            "starts_miscounted",
            statement("verify/starts_miscounted"),
            statement("verify/mend_starts_miscounted"),
        ),
    )


def violations(conn: Connection, kept: float) -> list[Violation]:
    """Every promise that is broken now.

    Args:
        conn: in autocommit mode, without a bound on statements: some read tables whole.
        kept: seconds that completed jobs are kept: a younger one that is missing is lost.
    """
    return [found for rule in rules() for found in _broken(conn, rule, kept)]


def repair(conn: Connection, kept: float) -> list[Mended]:
    """Mend what can be mended safely.

    Args:
        conn: as for `violations`.
        kept: as for `violations`.

    Returns:
        What was done. Look again afterwards: a mend may show the next violation.
    """
    done: list[Mended] = []
    for rule in rules():
        more = True
        while more:
            found = _broken(conn, rule, kept)
            mended = _mend(conn, rule, [violation.subject for violation in found])
            done += mended
            more = len(found) == SHOWN and bool(mended)
    return done


def _broken(conn: Connection, rule: Rule, kept: float) -> list[Violation]:
    with translated():
        rows: Sequence[Any] = conn.execute(rule.broken, {"kept": kept, "limit": SHOWN}).fetchall()
    return [Violation(rule.name, subject, detail) for subject, detail in rows]


def _mend(conn: Connection, rule: Rule, ids: Sequence[str]) -> list[Mended]:
    if not ids:
        return []
    if rule.name == "running_without_owner":
        return _rescue(conn, rule, ids)
    if rule.mend is None:
        return []
    with translated():
        rows: Sequence[Any] = conn.execute(rule.mend, {"ids": list(ids)}).fetchall()
    return [Mended(rule.name, subject, said) for subject, said in rows]


def _rescue(conn: Connection, rule: Rule, ids: Sequence[str]) -> list[Mended]:
    """The engine's own way: their attempt is spent, if it had begun."""
    with translated():
        rows: Sequence[Any] = conn.execute(
            statement("verify/owners_of"), {"ids": list(ids)}
        ).fetchall()
    counts = rescue(conn, {epoch: "verify" for (epoch,) in rows})
    said = "taken back from its owner"
    return [Mended(rule.name, subject, said) for subject in ids] if any(counts.values()) else []
