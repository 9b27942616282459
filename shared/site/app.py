"""The reference site's declarations: an App like any other application's.

Read by `shared.app.load_app`. Handlers are named, not imported: they live in workers.handlers.
"""

from __future__ import annotations

from shared.app import App
from shared.errors import DatabaseUnavailable
from shared.events.subscriptions import Subscription
from shared.events.type import EventType
from shared.jobs.kinds import Kind
from shared.jobs.outages import Outage

app = App(
    include_site=False,
    event_types=(
        EventType(
            "corpus.note.changed",
            "A note was added, removed, or changed in a column that readers see.",
            "<genre>://<path> of the note",
            exposure="webhook",
        ),
    ),
    kinds=(
        Kind(
            "corpus.reindex",
            queue="index",
            handler="workers.handlers.index.corpus_reindex:handle",
            timeout=600,
        ),
    ),
    subscriptions=(
        Subscription(
            "corpus.index",
            types=("corpus.note.changed",),
            queue="index",
            handler="workers.handlers.index.corpus_index:handle",
            coalesce=True,
            # Ten tries on the default backoff are spent in minutes; a search that is away for
            # longer must not lose index work.
            outage=Outage((DatabaseUnavailable,), delay=5, horizon=24 * 3600),
        ),
    ),
)
