"""The reference site's declarations: an App like any other application's.

Read by `shared.app.load_app`. Handlers are named, not imported: they live in workers.handlers.
"""

from __future__ import annotations

from shared.app import App
from shared.events.subscriptions import Subscription
from shared.events.type import EventType
from shared.jobs.kinds import Kind

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
        ),
    ),
)
