"""What the engine itself runs, declared like any application's: webhooks, retention, replays.

Read by `shared.app.load_app`, which merges it into every application. Handlers are named, not
imported: they live in workers.handlers.maintenance and workers.handlers.webhook.
"""

from __future__ import annotations

from shared.app import App
from shared.backoff import MAIL, WEBHOOK
from shared.events.subscriptions import Subscription
from shared.events.type import EventType
from shared.jobs.kinds import Kind
from shared.jobs.periodic import Periodic

HOUR = 3600.0
HANDLERS = "workers.handlers.maintenance"
WEBHOOKS = "workers.handlers.webhook"
# More tries than any schedule has: a delivery ends by its schedule, not by its job.
MOST_TRIES = 64


def _kind(task: str) -> Kind:
    return Kind(f"weirkeeper.{task}", queue="maintenance", handler=f"{HANDLERS}.{task}:handle")


def _hourly(task: str) -> Periodic:
    return Periodic(f"weirkeeper.{task}", f"weirkeeper.{task}", every=HOUR)


app = App(
    include_site=False,
    kinds=(
        _kind("prune_jobs"),
        _kind("prune_events"),
        _kind("prune_records"),
        _kind("discard_unknown"),
        _kind("verify"),
        _kind("replay"),
        _kind("tidy_webhooks"),
        _kind("probe_webhooks"),
        Kind(
            "webhook.deliver",
            queue="webhook",
            handler=f"{WEBHOOKS}.webhook_deliver:handle",
            max_attempts=MOST_TRIES,
            timeout=15,
            backoff=WEBHOOK,
            searchable=("delivery_id",),
        ),
        Kind(
            "webhook.probe",
            queue="webhook",
            handler=f"{WEBHOOKS}.webhook_probe:handle",
            max_attempts=1,
            timeout=15,
        ),
        Kind(
            "webhook.replay",
            queue="webhook",
            handler=f"{WEBHOOKS}.webhook_replay:handle",
            timeout=30,
        ),
    ),
    event_types=(
        EventType(
            "webhook.test",
            "The owner of an endpoint sent a test to it.",
            "webhook://<endpoint id>",
            exposure="webhook",
        ),
        EventType(
            "webhook.endpoint.failing",
            "Half of the time has passed after which an endpoint that only fails is disabled.",
            "webhook://<endpoint id>",
        ),
        EventType(
            "webhook.endpoint.disabled",
            "An endpoint was disabled: it is gone, failed for five days, or may not be called.",
            "webhook://<endpoint id>",
        ),
    ),
    subscriptions=(
        Subscription(
            "webhook.fanout",
            types=("*",),
            queue="webhook",
            handler=f"{WEBHOOKS}.webhook_fanout:handle",
            exposed=True,
            endpoints=True,
            timeout=30,
        ),
        Subscription(
            "webhook.notice",
            types=("webhook.endpoint.*",),
            queue="notify",
            handler="workers.handlers.notify.webhook_notice:handle",
            max_attempts=8,
            backoff=MAIL,
        ),
    ),
    periodics=(
        _hourly("prune_jobs"),
        _hourly("prune_events"),
        _hourly("prune_records"),
        _hourly("discard_unknown"),
        _hourly("tidy_webhooks"),
        _hourly("probe_webhooks"),
        Periodic("weirkeeper.verify", "weirkeeper.verify", every=24 * HOUR),
    ),
)
