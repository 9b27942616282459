"""`weirkeeper demo`: real input through the running system, and what happened on the way."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

from panel.cli.demonstration import Report, demonstrate, quantile
from panel.cli.desk import add_desk_arguments, open_desk
from panel.cli.output import complain, milliseconds, print_json
from panel.cli.terminal import Column, clean, here
from panel.cli.webhooks.trial import Trial
from shared.config.settings import Settings
from shared.config.spelling import command_line
from shared.errors import NotFound
from shared.postgres.driver.connect import Use, connect

HELP = "notes into the running server, found by search, sent as webhooks; what happened on the way"
ROOT = Path(__file__).resolve().parents[3]
BODY = 160  # characters of a webhook that are shown
UNCHANGED = "nothing had changed"
HAPPENED = (Column("what", style=lambda _: "bold"), Column("figure", right=True), Column("more"))
SEARCHES = (
    Column("query", style=lambda _: "bold"),
    Column("hits", right=True),
    Column("took", right=True),
    Column("best hit", gives=True),
    Column("where it says so", gives=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--notes", metavar="DIR", help="a folder of Markdown (default: the project's own docs)"
    )
    add_desk_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the demo; return 0 when all that was written can be found, and was delivered, else 1."""
    folders = _folders(args.notes)
    url = Settings.load().database()
    with (
        open_desk(args.owner) as desk,
        closing(connect(url, "demo", Use.READ)) as conn,
    ):
        report = demonstrate(desk, conn, folders, complain)
    if args.json:
        print_json(_plain(report))
    else:
        _print(report)
    return 1 if report.not_searchable or report.webhooks.missing else 0


def _folders(given: str | None) -> list[Path]:
    """What to import.

    Raises:
        NotFound: no folder was given and the project's docs are not here.
    """
    if given is not None:
        return [Path(given)]
    found = [path for path in (ROOT / "docs", ROOT / "README.md") if path.exists()]
    if not (ROOT / "docs").is_dir():
        raise NotFound(
            "notes: expected the project's docs beside this program; this is an installed "
            "package without them; pass a folder of Markdown: --notes DIR"
        )
    return found


def _print(report: Report) -> None:
    terminal = here()
    assert report.imported is not None
    for line in report.imported.skipped:
        complain(line)
    print()
    print(terminal.table(HAPPENED, _happened(report)))
    print()
    print(terminal.table(SEARCHES, [_searched(*search) for search in report.searches]))
    print()
    _print_webhook(report.webhooks)
    metrics, listener = (report.addresses.get(role, "") for role in ("metrics", "listener"))
    if metrics:
        print(f"The same figures, as they are counted: curl -s http://{metrics}/metrics")
    job_id = report.single_journeys[0].job_id if report.single_journeys else None
    if listener and job_id:
        print(
            f"How one of these jobs ended:           curl -s http://{listener}/v1/jobs/{job_id}/wait"
        )
    if job_id:
        print(f"Every attempt of it:                   {command_line()} jobs get {job_id}")


def _print_webhook(trial: Trial) -> None:
    """One delivery as it came, or why none did."""
    if trial.why_not:
        left = f"{trial.missing} webhooks did not come" if trial.address else "webhooks left out"
        complain(f"{left}: {trial.why_not}")
    for one in trial.verified[:1]:
        body = clean(trial.came[one].body)
        shown = body if len(body) <= BODY else f"{body[: BODY - 1]}…"
        print(f"One webhook, as {trial.address} had it {milliseconds(trial.seconds[one])} after:")
        print(f"  webhook-id {one}, signature ok\n  {shown}")
        print("The receiver and its endpoint are gone again; to try it by hand: docs/webhooks.md\n")


def _happened(report: Report) -> list[tuple[str, str, str]]:
    done = report.imported
    assert done is not None
    every = [*report.imported_journeys, *report.single_journeys]
    passes = report.passes()
    singles = len(report.receipts)
    return [
        (
            "notes imported",
            f"{done.created + done.updated + done.unchanged:,}",
            f"{done.created} new, {done.updated} changed, {done.unchanged} as before",
        ),
        (
            "import took",
            milliseconds(report.import_seconds),
            f"{len(done.skipped)} files skipped",
        ),
        ("notes written singly", f"{singles:,}", "each with a receipt"),
        ("events recorded", f"{len(every):,}", "by the trigger of the notes table"),
        ("relay passes", f"{len(passes):,}", f"the largest of {max(passes, default=0)} (≤ 200)"),
        (
            "jobs completed",
            f"{len({j.job_id for j in every if j.finished is not None}):,}",
            f"{len(report.not_searchable)} missing",
        ),
        _searchable(report),
        _latency(
            "note → searchable", [j.finished for j in report.single_journeys], "one at a time"
        ),
        _latency("in the import", [j.finished for j in report.imported_journeys], "in batches"),
        _latency(
            "receipt", report.receipts, f"{report.receipts_indexed} of {singles} said indexed: true"
        ),
        *_delivered(report.webhooks),
    ]


def _delivered(trial: Trial) -> list[tuple[str, str, str]]:
    if not trial.address:
        return []
    more = f"{trial.missing} missing, {trial.again} more than once, each signature checked"
    seconds = [trial.seconds[one] for one in trial.verified]
    row = ("webhooks received", f"{len(trial.verified):,}", more)
    return [
        row,
        *([_latency("event → receiver", seconds, "one request at a time")] * bool(seconds)),
    ]


def _searchable(report: Report) -> tuple[str, str, str]:
    name, seconds = "all searchable after", report.searchable_seconds
    if seconds is None:
        return name, "-", UNCHANGED
    return name, milliseconds(seconds), "from the import's start"


def _latency(name: str, found: list[float | None] | list[float], more: str) -> tuple[str, str, str]:
    values = [value for value in found if value is not None]
    p50, p99 = quantile(values, 0.5), quantile(values, 0.99)
    if p50 is None or p99 is None:
        return name, "-", UNCHANGED
    return name, milliseconds(p50), f"p50; p99 {milliseconds(p99)}; {more}"


def _searched(query: str, seconds: float, found: object) -> tuple[object, ...]:
    hits = getattr(found, "hits", [])
    corrected = getattr(found, "corrected", {})
    shown = query + "".join(f" → {others[0]}" for others in corrected.values())
    best = hits[0] if hits else None
    return (
        shown,
        len(hits),
        milliseconds(seconds),
        best.title if best else None,
        best.snippet[:60] if best else None,
    )


def _plain(report: Report) -> dict[str, object]:
    singles = [j.finished for j in report.single_journeys if j.finished is not None]
    whole = [j.finished for j in report.imported_journeys if j.finished is not None]
    assert report.imported is not None
    imported = {
        name: getattr(report.imported, name)
        for name in ("created", "updated", "unchanged", "skipped")
    }
    return {
        "imported": imported,
        "events": len(report.imported_journeys) + len(report.single_journeys),
        "not_searchable": report.not_searchable,
        "relay_passes": len(report.passes()),
        "largest_pass": max(report.passes(), default=0),
        "import_seconds": report.import_seconds,
        "searchable_seconds": report.searchable_seconds,
        "single_ms": _quantiles(singles),
        "import_ms": _quantiles(whole),
        "receipt_ms": _quantiles(report.receipts),
        "receipts": len(report.receipts),
        "receipts_indexed": report.receipts_indexed,
        "webhooks": {
            "received": len(report.webhooks.verified),
            "missing": report.webhooks.missing,
            "again": report.webhooks.again,
            "why_not": report.webhooks.why_not,
            "ms": _quantiles([report.webhooks.seconds[one] for one in report.webhooks.verified]),
        },
        "searches": [
            {"query": query, "ms": seconds * 1000, "found": found}
            for query, seconds, found in report.searches
        ],
        "addresses": report.addresses,
    }


def _quantiles(values: list[float]) -> dict[str, float | None]:
    return {
        name: None if (value := quantile(values, share)) is None else round(value * 1000, 2)
        for name, share in (("p50", 0.5), ("p99", 0.99))
    }
