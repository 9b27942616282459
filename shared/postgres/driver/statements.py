"""SQL by name: `statement("claims/claim")` is the text of sql/claims/claim.sql.

Stands between every adapter and its SQL: no adapter holds SQL in a Python string. Texts are read
once. A test asserts that each file is used exactly once.

The files say `weirkeeper` and `site`; `rendered` puts another installation's names in their place,
once a text, so that no statement pays for it. With the default names a text stays as it stands.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import LiteralString

from shared.config.installation import DEFAULT, schema_name, site_schema

LOCK_CLASS = 1464160587  # "WEIK": the class of our advisory locks, as the files say it

# `weirkeeper.job`, `weirkeeper_final`, `schema weirkeeper`, and sessions called 'weirkeeper …'; not
# the program's name in a sentence ("run weirkeeper migrate").
_ENGINE = re.compile(
    r"\bweirkeeper(?=[._])|(?<=\bschema )weirkeeper\b|(?<= exists )weirkeeper\b"
    r"|(?<=')weirkeeper(?= ')"
)
_SITE = re.compile(r"\bsite(?=\.)|(?<=\bschema )site\b")


@cache
def statement(name: str) -> LiteralString:
    """The text of one statement.

    Args:
        name: "<area>/<method>", a file under sql/ without its suffix.

    Raises:
        FileNotFoundError: no such statement.
        ConfigurationError: WEIRKEEPER_SCHEMA cannot work.
    """
    area, _, method = name.partition("/")
    path = files("shared.postgres") / "sql" / area / f"{method}.sql"
    return rendered(path.read_text("utf-8"))


def rendered(text: LiteralString) -> LiteralString:
    """A text of ours with this installation's names: SQL, or the name of a channel."""
    schema = schema_name()
    if schema == DEFAULT:
        return text
    # The result is literal but for a name of letters, digits and "_" that was checked.
    named = _ENGINE.sub(schema, text)
    named = _SITE.sub(site_schema(schema), named)
    return named.replace(str(LOCK_CLASS), str(lock_class(schema)))


def lock_class(schema: str) -> int:
    """First number of an installation's advisory locks, which are shared by a whole database.

    Two installations that met on one number would only wake each other, and poll: never lose.
    """
    if schema == DEFAULT:
        return LOCK_CLASS
    return int.from_bytes(hashlib.sha256(schema.encode()).digest()[:4], "big") & 0x7FFF_FFFF
