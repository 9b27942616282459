"""Crowded tables of webhooks: endpoints of many owners, deliveries in every state, their attempts.

Beside tests.support.crowd, whose jobs stand for those of the deliveries, and whose events for theirs.
"""

from __future__ import annotations

from shared.postgres.driver.connect import Connection

BIG = frozenset(("endpoint", "delivery", "delivery_attempt", "endpoint_line", "endpoint_secret"))
OWNER = "o7"
# Endpoint 1 has a tenth of all deliveries; each fifth endpoint is disabled, each seventh fails.
_FILL = (
    "set local session_replication_role = replica",
    (
        "insert into weirkeeper.endpoint (id, owner_id, url, event_types, enabled, disabled_reason,"
        " disabled_at, failures, failing_since) overriding system value"
        " select i, 'o' || i %% 1000 + 6, 'https://example.org/', '{t.*}', i %% 5 > 0,"
        "  case when i %% 5 = 0 then 'failing' end, case when i %% 5 = 0 then now() end,"
        "  i %% 2, case when i %% 2 > 0 then now() end"
        " from generate_series(1, %(n)s::bigint / 20) i"
    ),
    (
        "insert into weirkeeper.endpoint_secret (endpoint_id, sealed)"
        " select i, '\\x0011223344' from generate_series(1, %(n)s::bigint / 20) i"
    ),
    (
        "insert into weirkeeper.delivery (id, endpoint_id, event_id, event_seq, event_type, owner_id,"
        " body, trigger, state, job_id, ended_at) overriding system value"
        " select i, e, gen_random_uuid(), i, 't.happened', 'o' || e %% 1000 + 6, 'x', 'auto',"
        "  case when i %% 2 = 0 then 'pending' else 'delivered' end, i,"
        "  case when i %% 2 > 0 then now() - interval '40 days' * (i %% 3) end"
        " from generate_series(1, %(n)s::bigint / 2) i"
        " cross join lateral (select case when i %% 10 < 2 then 1 else 1 + i %% (%(n)s::bigint / 20)"
        "  end as e) g"
    ),
    (
        "insert into weirkeeper.delivery_attempt (delivery_id, number, trigger, started_at, url,"
        " result, code)"
        " select i, 1, 'auto', now(), 'https://example.org/', 'delivered', 'ok'"
        " from generate_series(1, %(n)s::bigint / 2) i"
    ),
    (
        "insert into weirkeeper.endpoint_line (endpoint_id, event_seq, event_id)"
        " select 1 + i %% 100, i, gen_random_uuid() from generate_series(1, %(n)s::bigint / 20) i"
    ),
    "set local session_replication_role = origin",
)


def webhook_crowd(conn: Connection, number: int) -> None:
    """What so many jobs leave among webhooks.

    Args:
        conn: of a superuser.
        number: of jobs; half as many deliveries, and a twentieth of endpoints.
    """
    with conn.transaction():
        for text in _FILL:
            conn.execute(text, {"n": number} if "%" in text else None)
