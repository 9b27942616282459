"""Which schema a program accepts: a range, so that old and new run side by side in a deploy.

Too old: the program stays, not ready, and looks again (somebody is about to migrate). Newer and
marked breaking: it refuses (exit 78). Newer and not breaking: it runs, which makes roll-backs
possible.
"""

from __future__ import annotations

from shared.config.spelling import command_line
from shared.errors import SchemaTooNew, SchemaTooOld
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.schema.migrator import applied, migrations


def check_schema(conn: Connection) -> int:
    """Return the database's schema version, if this build can run on it.

    Raises:
        SchemaTooOld: migrations are missing; run `weirkeeper migrate`.
        SchemaTooNew: a breaking migration that this build does not know.
    """
    needed = migrations()[-1].version
    with translated():
        have = applied(conn)
    newest = have[-1][0] if have else 0
    if newest < needed:
        raise SchemaTooOld(
            f"schema: expected version {needed}; got {newest}; run `{command_line()} migrate`"
        )
    for version, name, _, breaking in have:
        if version > needed and breaking:
            raise SchemaTooNew(
                f"schema: expected at most version {needed}; got {version} ({name}), which is "
                "breaking; upgrade this program"
            )
    return newest
