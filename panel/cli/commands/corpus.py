"""`weirkeeper corpus create|update|import|search`: notes from the command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from panel.cli.desk import add_desk_arguments, open_desk
from panel.cli.output import complain, print_json
from panel.cli.parsing import whole
from panel.cli.terminal import Column, here
from shared.errors import InvalidArguments
from shared.ops.corpus import Imported, Matches, Saved
from shared.ops.table import call
from shared.site.note import GENRES

HELP = "create, update, import and search notes"
HITS = (
    Column("score", right=True),
    Column("note", right=True),
    Column("title", gives=True, style=lambda _: "bold"),
    Column("where", gives=True, style=lambda _: "dim"),
    Column("text", gives=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="create|update|import|search"
    )
    create = actions.add_parser("create", help="add a note; says whether it can be found already")
    create.add_argument("title", metavar="TITLE")
    _add_fields(create)
    update = actions.add_parser("update", help="change what is given of a note")
    update.add_argument("id", metavar="ID")
    update.add_argument("--title")
    _add_fields(update)
    folder = actions.add_parser("import", help="add or update the notes of a folder of Markdown")
    folder.add_argument("folder", metavar="DIR")
    folder.add_argument("--genre", choices=GENRES, default="wiki")
    folder.add_argument("--under", default="", metavar="PLACE", help="where all of it goes: a/b")
    search = actions.add_parser("search", help="find notes by their words")
    search.add_argument("query", nargs="+", metavar="WORD")
    search.add_argument("--limit", type=whole, default=10, metavar="N", help="at most N hits (10)")
    search.add_argument("--published", action="store_true", help="as a visitor would search")
    for action in (create, update, folder, search):
        add_desk_arguments(action)


def run(args: argparse.Namespace) -> int:
    """Run the action; return 0, or 1 when an import brought nothing but complaints."""
    return {"create": _save, "update": _save, "import": _import, "search": _search}[args.action](
        args
    )


def _add_fields(parser: argparse.ArgumentParser) -> None:
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", help="the text")
    body.add_argument("--file", metavar="PATH", help="read the text from a file; - = input")
    parser.add_argument("--genre", choices=GENRES)
    parser.add_argument("--parent", dest="parent_id", metavar="ID", help="the note above")
    parser.add_argument("--tag", dest="tags", action="append", metavar="TAG")
    parser.add_argument("--alias", dest="aliases", action="append", metavar="NAME")
    parser.add_argument("--slug")
    parser.add_argument("--lang")
    parser.add_argument("--excerpt")
    parser.add_argument("--published", action=argparse.BooleanOptionalAction, default=None)
    parser.add_argument("--archived", action=argparse.BooleanOptionalAction, default=None)


def _fields(args: argparse.Namespace) -> dict[str, Any]:
    names = (
        "title", "body", "genre", "parent_id", "tags", "aliases", "slug", "lang", "excerpt",
        "published", "archived",
    )  # fmt: skip
    given = {name: getattr(args, name) for name in names}
    if args.file:
        given["body"] = _read(args.file)
    return {name: value for name, value in given.items() if value is not None}


def _read(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.buffer.read().decode()
        return Path(name).read_bytes().decode()
    except (OSError, UnicodeError) as error:
        raise InvalidArguments(f"--file: expected UTF-8 text; got {name!r}: {error}") from error


def _save(args: argparse.Namespace) -> int:
    fields = _fields(args)
    if args.action == "update":
        fields["id"] = args.id
    with open_desk(args.owner) as desk:
        saved: Saved = call(desk, f"corpus.{args.action}", fields)
    if args.json:
        print_json(saved)
        return 0
    print(f"note {saved.id}, version {saved.version}: {saved.path}")
    if saved.indexed:
        print("indexed: a search finds it")
    elif saved.index_job_id:
        print(f"not indexed yet: weirkeeper jobs get {saved.index_job_id}")
    else:
        print("not indexed yet: its event waits for the relay")
    return 0


def _import(args: argparse.Namespace) -> int:
    asked = {"folder": args.folder, "genre": args.genre, "under": args.under}
    with open_desk(args.owner) as desk:
        done: Imported = call(desk, "corpus.import", asked)
    if args.json:
        print_json(done)
    else:
        for line in done.skipped:
            complain(line)
        print(
            f"{done.created} created, {done.updated} updated, {done.unchanged} unchanged, "
            f"{len(done.skipped)} skipped; indexing follows"
        )
    brought = done.created + done.updated + done.unchanged
    return 1 if done.skipped and not brought else 0


def _search(args: argparse.Namespace) -> int:
    asked = {
        "query": " ".join(args.query),
        "limit": args.limit,
        "published_only": args.published,
    }
    with open_desk(args.owner) as desk:
        found: Matches = call(desk, "corpus.search", asked)
    if args.json:
        print_json(found)
        return 0
    for word, others in found.corrected.items():
        complain(f"nothing has {word!r}; looked for {', '.join(others)}")
    if not found.hits:
        print("nothing found")
        return 0
    rows = [(f"{h.score:.3f}", h.note_id, h.title, h.path, h.snippet) for h in found.hits]
    print(here().table(HITS, rows))
    return 0
