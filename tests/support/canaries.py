"""Looks for planted secrets wherever somebody might read them who must not.

A canary is a secret of a name. It is looked for as it stands and in the spellings in which a program
is likely to let it slip: percent-encoded, in base64, in hexadecimal.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.support.processes import Programs

COLUMNS = """
select c.table_name, c.column_name, c.data_type = 'bytea'
from information_schema.columns c
join information_schema.tables t using (table_schema, table_name)
where table_schema = 'weirkeeper' and t.table_type = 'BASE TABLE'
order by 1, 2
"""


class Canaries:
    """Secrets by name, and where they were found.

    Args:
        secrets: name to secret.
        stored: columns ("table.column") that hold some of them by design, by secret.
    """

    def __init__(self, secrets: Mapping[str, str], stored: Mapping[str, Iterable[str]]) -> None:
        self._spellings = {name: set(_spellings(secret)) for name, secret in secrets.items()}
        self._stored = {name: frozenset(columns) for name, columns in stored.items()}
        self.searched: set[str] = set()
        self.found: set[tuple[str, str]] = set()

    def look_into(self, place: str, text: bytes) -> None:
        """Search some bytes.

        Args:
            place: what they are, for the report.
            text: the bytes.
        """
        self.searched.add(place)
        for name, spellings in self._spellings.items():
            if place not in self._stored.get(name, ()) and any(one in text for one in spellings):
                self.found.add((name, place))

    def look_into_files(self, folder: Path) -> None:
        """Search every file beneath a folder."""
        for file in folder.rglob("*"):
            if file.is_file():
                self.look_into(str(file.relative_to(folder)), file.read_bytes())

    def look_into_tables(self, url: str) -> None:
        """Search every column of every table of ours."""
        with psycopg.connect(url, autocommit=True) as conn:
            for table, column, binary in conn.execute(COLUMNS).fetchall():
                statement = sql.SQL("select {} from weirkeeper.{}").format(
                    sql.SQL("{}" if binary else "{}::text").format(sql.Identifier(column)),
                    sql.Identifier(table),
                )
                values = [row[0] for row in conn.execute(statement) if row[0] is not None]
                everything = b"\n".join(v if binary else v.encode() for v in values)
                self.look_into(f"{table}.{column}", everything)

    def look_into_command_lines(self, programs: Programs) -> None:
        """Search what every process of a test was started with, and their titles."""
        for pid in programs.living():
            try:
                told = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue  # it has just ended
            self.look_into("a command line", told)


def _spellings(secret: str) -> Iterator[bytes]:
    raw = secret.encode()
    yield from (raw, quote(secret, safe="").encode(), raw.hex().encode())
    for offset in range(3):  # wherever it stands in what is encoded, this much of it stays the same
        spelt = base64.b64encode(bytes(offset) + raw)
        yield spelt[4:-4]
