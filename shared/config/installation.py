"""The name of the Postgres schema that this installation lives in: what tells two of them apart.

Everything that must not be shared by two installations in one database is derived from it: the
schemas, the channels, the advisory locks, the sessions' names (shared.postgres.driver.statements).
"""

from __future__ import annotations

import re
from functools import cache

from shared.config.env import Environment
from shared.errors import ConfigurationError

SETTING = "WEIRKEEPER_SCHEMA"
DEFAULT = "weirkeeper"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}", re.ASCII)
_SITE = "_site"  # what the site's own schema is called after


def check_schema_name(name: str) -> str:
    """Return the name, if a schema of ours may be called so.

    Words of SQL are refused by the migrator, which can ask the server for them.

    Raises:
        ConfigurationError: it is not a plain name, or it is somebody else's.
    """
    # Postgres keeps pg_ for itself; the others would be emptied, or met by a second installation.
    taken = name.startswith("pg_") or name in ("public", "information_schema", "site")
    if not _NAME.fullmatch(name) or taken or name.endswith(_SITE):
        raise ConfigurationError.of(
            SETTING,
            "a name [a-z][a-z0-9_]{0,40}, not public, site, …_site or pg_…",
            name,
            "choose another",
        )
    return name


@cache
def schema_name() -> str:
    """The engine's schema, from the environment of this process; read once.

    Raises:
        ConfigurationError: see check_schema_name.
    """
    return check_schema_name(Environment().text(SETTING))


def site_schema(name: str) -> str:
    """The reference site's schema beside an engine's: "site", or named after the engine's."""
    return "site" if name == DEFAULT else name + _SITE
