"""Looks of an owner at webhooks, and what tidies them, look rows up however many there are."""

from __future__ import annotations

from contextlib import ExitStack, closing
from uuid import uuid4

import pytest

from shared.errors import NotFound
from shared.postgres.driver.connect import connect
from shared.postgres.webhooks.endpoints import PostgresWebhooks
from tests.support.hooks import Hooks, rules
from tests.support.plans import Watch
from tests.support.webhook_crowd import BIG, OWNER, webhook_crowd

FEW = 40
SIZES = (30_000, 120_000)  # jobs; half as many deliveries, and more wait than a list counts
PLANNED = 6  # times until a prepared statement has its one plan
HERS = "1"  # an endpoint of OWNER, with a tenth of all deliveries
NOWHERE = str(uuid4())


def _nothing(look, *given, **more):
    with pytest.raises(NotFound):
        look(*given, **more)


LOOKS = {
    "endpoints": lambda w: w.endpoints(OWNER),
    "endpoint": lambda w: w.get(OWNER, HERS),
    "deliveries": lambda w: w.deliveries(OWNER, HERS, limit=50),
    "an old page": lambda w: w.deliveries(OWNER, HERS, before="1000", limit=50),
    "those that wait": lambda w: w.deliveries(OWNER, HERS, state="pending", limit=50),
    "attempts": lambda w: w.attempts(OWNER, "11"),
    "missed": lambda w: w.missed(OWNER, HERS, "5", 50),
    "explain": lambda w: w.explain(OWNER, HERS, NOWHERE),
    "of an event": lambda w: _nothing(w.redeliver, OWNER, event_id=NOWHERE),
    "of a delivery": lambda w: _nothing(w.redeliver, "nobody", delivery_id="11"),
    "wanting": lambda w: w.wanting(OWNER, ["t.happened"]),
}


@pytest.mark.timeout(300)
def test_a_look_costs_no_more_among_more(database_url):
    """With plans that were made while there were fewer, and with new ones."""
    found, bad = {}, []
    with closing(Hooks(database_url)) as hooks:
        for table in BIG:  # nobody counts them anew
            hooks.conn.execute(f"alter table weirkeeper.{table} set (autovacuum_enabled = off)")
        for number in SIZES:
            hooks.conn.execute("truncate weirkeeper.endpoint, weirkeeper.endpoint_line cascade")
            webhook_crowd(hooks.conn, FEW)
            hooks.conn.execute("vacuum analyze")
            with ExitStack() as stack:
                sessions = {
                    look: stack.enter_context(closing(connect(database_url, "x"))) for look in LOOKS
                }
                watches = {look: Watch(conn) for look, conn in sessions.items()}
                for when in ("few", "many", "counted"):
                    if when == "many":
                        for table in ("endpoint_line", "endpoint"):  # what truncates, plans anew
                            hooks.conn.execute(f"delete from weirkeeper.{table}")
                        webhook_crowd(hooks.conn, number)
                    if when == "counted":
                        hooks.conn.execute("vacuum analyze")
                    for look, act in LOOKS.items():
                        for _ in range(1 if when == "many" else PLANNED):
                            with watches[look].plans() as plans:
                                act(PostgresWebhooks(sessions[look], rules()))
                        assert plans
                        found[number, when, look] = sum(plan.pages for plan in plans)
                        if when != "few":
                            bad += [
                                f"{look}: {said}: {p.text}" for p in plans for said in p.bad(BIG)
                            ]
    assert not bad, "\n".join(bad)
    for (number, when, look), pages in found.items():
        least = found[SIZES[0], when, look]
        assert pages <= 2 * least + 50, f"{look}, {when}: {least} → {pages} pages ({number})"
