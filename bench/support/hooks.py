"""Endpoints and deliveries for measurements, made as an application and the fan-out make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.app import load_app
from shared.config.env import Environment
from shared.config.outbound import read_outbound
from shared.postgres.driver.connect import Connection
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.queues.catalog import declare
from shared.postgres.webhooks.deliveries import PostgresDeliveries
from shared.postgres.webhooks.endpoints import PostgresWebhooks
from shared.webhooks.body import encode
from shared.webhooks.endpoint import Draft
from shared.webhooks.policy import Policy
from shared.webhooks.rules import rules_of
from shared.webhooks.sealing import Sealer

SECRET = "a secret of the measurements alone"
TYPE = "owner.login"


def endpoints(
    conn: Connection, url: str, number: int, environment: Mapping[str, str], owner: str = "bench"
) -> list[str]:
    """Add endpoints with one URL; return their ids."""
    declare(conn, load_app(None))
    policy = Policy(read_outbound(Environment(environment)))
    webhooks = PostgresWebhooks(conn, rules_of(policy, Sealer([SECRET])))
    return [webhooks.create(owner, Draft(url, (TYPE,))).id for _ in range(number)]


def send(conn: Connection, targets: Sequence[str], each: int, owner: str = "bench") -> None:
    """Put so many events on their way to every endpoint."""
    deliveries = PostgresDeliveries(conn)
    recorder = PostgresRecorder(conn)
    for _ in range(each):
        with conn.transaction():
            event = recorder.record(TYPE, owner_id=owner, subject="owner/1", data={"n": "x" * 400})
            message = deliveries.message(event)
            assert message is not None
            body = encode(message)
            for target in targets:
                deliveries.add(int(target), event, body, "auto")
