"""The reference site's declarations: an App like any other application's.

Read by `shared.app.load_app`. Handlers are named, not imported: they live in workers.handlers.
"""

from __future__ import annotations

from shared.app import App
from shared.errors import DatabaseUnavailable
from shared.events.subscriptions import Subscription
from shared.jobs.kinds import Kind
from shared.jobs.outages import Outage
from shared.site.event_types import EVENT_TYPES

app = App(
    include_site=False,
    event_types=EVENT_TYPES,
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
