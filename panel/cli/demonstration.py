"""What the demo does and measures; `panel.cli.commands.demo` prints it.

Works like an application would: operations through a desk, waits for what was committed, no
polling. Figures are taken afterwards from the event log and the attempt log, by the database's
clock, except those of receipts, which are what the caller saw.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from panel.cli.webhooks.trial import Trial, trying
from shared.clock import SYSTEM
from shared.config.spelling import command_line
from shared.errors import (
    ConfigurationError,
    DatabaseRefused,
    DatabaseUnavailable,
    InvalidArguments,
    WeirkeeperError,
)
from shared.ops.corpus import Imported, Matches, Saved
from shared.ops.desk import Desk
from shared.ops.table import call
from shared.postgres.driver.connect import Connection
from shared.postgres.events.journeys import Journey, journeys
from shared.postgres.processes.registry import LEASE, processes
from shared.postgres.queues.catalog import has_route
from shared.site.drafts import Draft
from shared.site.receipts import SUBSCRIPTION

SINGLES = 25
UNDER = "weirkeeper-demo"
EVENT = "corpus.note.changed"
PATIENCE = 300.0  # seconds until everything must be searchable
LOOK = 2.0  # seconds of a wait after which the database is looked at
TEXTS = (
    "The relay takes at most two hundred events a pass.",
    "中继每次最多处理两百行，导入两千条笔记也不会变成一个巨大的事务。",
    "A receipt claims only what is committed.",
    "検索できるようになるまで待ち、だめなら受領書を返す。",
    "Where a row is, is its state.",
)
QUERIES = ("relay", "where a row is", "中继 两百", "検索", "comitted")
Tell = Callable[[str], None]


@dataclass(slots=True)
class Report:
    """What happened. Durations in seconds.

    Attributes:
        searchable_seconds: from the import's start; None: nothing had changed.
        webhooks: what a receiver got of the notes that were written singly.
    """

    imported: Imported | None = None
    import_seconds: float = 0.0
    searchable_seconds: float | None = None
    not_searchable: list[str] = field(default_factory=list)
    imported_journeys: list[Journey] = field(default_factory=list)
    single_journeys: list[Journey] = field(default_factory=list)
    receipts: list[float] = field(default_factory=list)
    receipts_indexed: int = 0
    searches: list[tuple[str, float, Matches]] = field(default_factory=list)
    addresses: dict[str, str] = field(default_factory=dict)
    webhooks: Trial = field(default_factory=Trial)

    def passes(self) -> list[int]:
        """Events by relay transaction, as far as they are this demo's."""
        every = (*self.imported_journeys, *self.single_journeys)
        return list(Counter(j.relay_pass for j in every if j.relay_pass).values())


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of all do not exceed; None without values."""
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else None


def require_ready(conn: Connection) -> tuple[set[str], dict[str, str]]:
    """Refuse to begin without the site, the relay and the index queue.

    Returns:
        Names of roles and queues that are ready, and addresses by role.

    The database knows what runs; this shell's WEIRKEEPER_APP may be another.

    Raises:
        ConfigurationError: the application that runs is without the site.
        WeirkeeperError: the processes are not ready.
    """
    if not has_route(conn, EVENT, SUBSCRIPTION):
        raise ConfigurationError(
            "application: expected one with the reference site, whose notes it writes; got one "
            "without; start the server with App(…, include_site=True), or without WEIRKEEPER_APP"
        )
    alive = [row for row in processes(conn) if row["phase"] == "ready" and row["beat_age"] < LEASE]
    have = {name for row in alive for name in (row["queue"] or row["role"]).split(",")}
    if missing := {"relay", "index"} - have:
        ours = command_line()
        raise WeirkeeperError(
            f"processes: expected relay and index ready; not ready: {', '.join(sorted(missing))}; "
            f"start `{ours} server` in another shell, or wait: `{ours} status --wait 60`"
        )
    return have, {row["role"]: row["address"] for row in alive if row["address"]}


def demonstrate(desk: Desk, conn: Connection, folders: Sequence[Path], tell: Tell) -> Report:
    """Import, wait, write single notes with receipts, search.

    Args:
        desk: of the demo's owner.
        conn: for what the logs say.
        folders: what to import.
        tell: called with a line before each step.
    """
    ready, addresses = require_ready(conn)
    report = Report(addresses=addresses)
    tell(f"importing {', '.join(map(str, folders))}")
    _import(desk, conn, folders, report)
    if "webhook" in ready:
        with trying(desk, EVENT) as report.webhooks:
            _write_singles(desk, conn, report, tell)
    else:
        report.webhooks.why_not = "no process of queue webhook is ready"
        _write_singles(desk, conn, report, tell)
    for query in QUERIES:
        started = SYSTEM.monotonic()
        found = call(desk, "corpus.search", {"query": query, "limit": 5})
        report.searches.append((query, SYSTEM.monotonic() - started, found))
    return report


def _import(desk: Desk, conn: Connection, folders: Sequence[Path], report: Report) -> None:
    started = SYSTEM.monotonic()
    done = [call(desk, "corpus.import", {"folder": str(f), "under": _place(f)}) for f in folders]
    report.imported = _together(done)
    report.import_seconds = SYSTEM.monotonic() - started
    events = report.imported.event_ids
    report.not_searchable = await_indexed(desk, conn, events)
    if events:
        report.searchable_seconds = SYSTEM.monotonic() - started
    report.imported_journeys = journeys(conn, events, SUBSCRIPTION)


def await_indexed(desk: Desk, conn: Connection, event_ids: Sequence[str]) -> list[str]:
    """Wait until the job of each event completed; return the events of which none did.

    Raises:
        DatabaseUnavailable: the database went away meanwhile.
    """
    deadline = SYSTEM.monotonic() + PATIENCE
    try:
        return [one for one in event_ids if not _is_indexed(desk, conn, one, deadline)]
    except (DatabaseUnavailable, DatabaseRefused) as error:
        raise DatabaseUnavailable(
            f"the database went away while the demo waited ({error}); nothing that was written is "
            "lost: start the server again, then the demo"
        ) from error


def _is_indexed(desk: Desk, conn: Connection, event_id: str, deadline: float) -> bool:
    job_id = None
    while left := _left(deadline):
        bound = min(left, LOOK)
        if job_id is None:
            job_id = desk.waits.await_fanout(event_id, SUBSCRIPTION, bound)
            late = job_id is None
        else:
            found = desk.waits.wait(job_id, bound)
            if found.finished:
                return found.state == "completed"
            late = True
        if late:
            processes(conn)  # a wait bears a database that is away; a demo has no use for that
    return False


def _place(folder: Path) -> str:
    """A folder goes below its own name: docs/README.md is not the README.md beside docs."""
    return f"{UNDER}/{folder.resolve().name}" if folder.is_dir() else UNDER


def _left(deadline: float) -> float:
    return max(0.0, deadline - SYSTEM.monotonic())


def _together(parts: Sequence[Imported]) -> Imported:
    """One account of all imports; the note above them all arrived with each, and counts once."""
    return Imported(
        created=sum(part.created for part in parts),
        updated=sum(part.updated for part in parts),
        unchanged=sum(part.unchanged for part in parts) - (len(parts) - 1),
        skipped=[line for part in parts for line in part.skipped],
        event_ids=[event_id for part in parts for event_id in part.event_ids],
    )


def _write_singles(desk: Desk, conn: Connection, report: Report, tell: Tell) -> None:
    trial = report.webhooks
    to = f" and a webhook to {trial.address}" if trial.address else ""
    tell(f"writing {SINGLES} notes one by one, each with a receipt{to}")
    run = SYSTEM.wall().isoformat(timespec="seconds")
    events = []
    for n in range(SINGLES):
        body = f"{TEXTS[n % len(TEXTS)]}\n\nWritten by the demo at {run}, note {n + 1}."
        started = SYSTEM.monotonic()
        saved = _save(desk, f"demo-{n + 1}", f"Demo note {n + 1}", body)
        report.receipts.append(SYSTEM.monotonic() - started)
        report.receipts_indexed += saved.indexed
        events.append(saved.event_id)
    report.not_searchable += await_indexed(desk, conn, events)
    report.single_journeys = journeys(conn, events, SUBSCRIPTION)
    if trial.address and not trial.await_all(events):
        trial.why_not = _why_missing(desk, trial)


def _why_missing(desk: Desk, trial: Trial) -> str:
    """How the first event that did not come stands with the endpoint."""
    late = next(one for one in trial.expected if one not in trial.came)
    found = call(desk, "webhooks.explain", {"endpoint_id": trial.endpoint_id, "event_id": late})
    return str(found.sentence)


def _save(desk: Desk, slug: str, title: str, body: str) -> Saved:
    """Add the note, or change the one that an earlier demo added."""
    parent = _folder(desk, UNDER, None)
    fields = {"title": title, "body": body, "parent_id": parent, "slug": slug}
    try:
        saved: Saved = call(desk, "corpus.create", fields)
    except InvalidArguments:
        note_id = _folder(desk, slug, parent)
        saved = call(desk, "corpus.update", {"id": note_id, "body": body})
    return saved


def _folder(desk: Desk, slug: str, parent: str | None) -> str:
    """The id of the note of that name, which is added empty if it is not there."""
    draft = Draft(slug=slug, parent_id=parent, title=slug, folder=True)
    return desk.notes.arrive(desk.owner_id, "wiki", [draft])[0].id
