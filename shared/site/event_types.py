"""Every event type of the reference site, as data: what happened, and what its subject names.

Read by shared.site.app. All may be carried by webhooks; none has a subscriber unless an application
declares one. `webhook.test` is the engine's. Types whose flow the site has say in docs/site.md
where they are recorded; the others are declared, so that subscriptions and endpoints can be written
for them.
"""

from __future__ import annotations

from shared.events.type import EventType

_ROWS = (
    (
        "corpus.note.changed",
        "A note was added, removed, or changed in a column that readers see.",
        "<genre>://<path> of the note",
    ),
    ("access_request.created", "Somebody asked for access.", "access_request/<id>"),
    ("access_request.approved", "The owner approved a request.", "access_request/<id>"),
    ("access_request.status_changed", "A request's status changed.", "access_request/<id>"),
    ("code.issued", "An access code was issued.", "code/<id>"),
    ("code.revoked", "An access code was revoked.", "code/<id>"),
    ("code.redeemed", "A visitor redeemed an access code.", "code/<id>"),
    ("conversation.started", "A visitor started a conversation.", "conversation/<id>"),
    ("conversation.message", "A message was added to a conversation.", "conversation/<id>"),
    ("conversation.pruned", "An old conversation was removed.", "conversation/<id>"),
    ("ghost.accepted", "The owner took over a text that was written for them.", "ghost/<id>"),
    ("writing.published", "A writing went public.", "writing://<slug>"),
    ("writing.unpublished", "A writing is public no more.", "writing://<slug>"),
    ("vault.imported", "A folder of notes was imported and changed something.", "vault/<owner id>"),
    ("api_key.issued", "A key for programs was issued.", "api_key/<id>"),
    ("api_key.revoked", "A key for programs was revoked.", "api_key/<id>"),
    ("supplier.connected", "A supplier was registered.", "supplier/<id>"),
    ("supplier.disconnected", "A supplier was removed.", "supplier/<id>"),
    ("supplier.activated", "A supplier became the one in use for its seam.", "supplier/<id>"),
    ("block.installed", "A block was installed.", "block/<id>"),
    ("block.failed", "A block could not be installed.", "block/<id>"),
    ("gas.exhausted", "An owner's allowance is used up.", "gas/<owner id>"),
    ("gas.refilled", "An owner's allowance was refilled.", "gas/<owner id>"),
    ("instance.upgrade_requested", "The owner asked for a newer version.", "instance/<id>"),
    ("owner.login", "The owner signed in.", "owner/<id>"),
    ("owner.email_changed", "The owner confirmed another address.", "owner/<id>"),
    ("owner.recovery_requested", "Somebody asked to recover the account.", "owner/<id>"),
    ("ip_ban.added", "An address was banned.", "ip_ban/<id>"),
    ("booking.created", "A visitor booked a time.", "booking/<id>"),
    ("booking.cancelled", "A booking was cancelled.", "booking/<id>"),
    ("booking.rescheduled", "A booking was moved to another time.", "booking/<id>"),
    ("application.committed", "An application for a job was sent.", "application/<id>"),
    ("jobs.fetched", "A job board was read and its listings kept.", "jobs/<owner id>"),
    ("microsite.build.settled", "A build ended, built or failed.", "microsite/<page id>"),
    ("page.promoted_live", "A page's build went live.", "microsite/<page id>"),
    ("page.rolled_back", "A page went back to an earlier build.", "microsite/<page id>"),
    ("page.unpublished", "A page was taken offline.", "microsite/<page id>"),
    ("microsite.store.doc_inserted", "A page stored a document.", "microsite/<page id>"),
)

EVENT_TYPES = tuple(
    EventType(name, description, subject, exposure="webhook")
    for name, description, subject in _ROWS
)
