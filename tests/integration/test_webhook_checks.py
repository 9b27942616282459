"""What an endpoint cannot be, whoever writes it: a trigger says so, for there are no constraints."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from tests.support.hooks import Hooks


@pytest.fixture
def hooks(database_url):
    with closing(Hooks(database_url)) as made:
        yield made


ENABLED = "enabled, disabled_reason, disabled_at"
FAILURES = "failures, failing_since, noticed"
WRONG = {
    "owner_id": ("owner_id = ''", "owner_id = repeat('x', 201)"),
    "url": ("url = ''", "url = repeat('x', 2049)"),
    "description": ("description = repeat('x', 501)",),
    "event_types": ("event_types = '{}'", "event_types = array_fill('x'::text, '{101}')"),
    "headers": ("headers = '[]'",),
    "format": ("format = 'xml'",),
    "signature": ("signature = 'v2'",),
    "ordering": ("ordering = 'some'",),
    "rate": ("rate = 0", "rate = 6001"),
    "schedule": ("schedule = '{}'", "schedule = array_fill(1::float8, '{31}')"),
    "contact": ("contact = 'a'", "contact = repeat('x', 255)"),
    ENABLED: (
        "enabled = false",
        "disabled_reason = 'gone'",
        "disabled_at = now()",
        "enabled = false, disabled_reason = 'whim', disabled_at = now()",
        "enabled = false, disabled_reason = 'gone'",
        "enabled = false, disabled_at = now()",
    ),
    FAILURES: (
        "failures = 1",
        "failures = -1, failing_since = now()",
        "failing_since = now()",
        "rate = 5, noticed = 7",
    ),
    "busy_until, lease_token": ("rate = 5, busy_until = now()", "rate = 5, lease_token = 1"),
}


@pytest.mark.parametrize(
    ("columns", "wrong"), [(columns, one) for columns, all_ in WRONG.items() for one in all_]
)
def test_what_it_cannot_be_is_refused(hooks, columns, wrong):
    one = hooks.endpoint()
    with pytest.raises(psycopg.errors.CheckViolation, match=f"expected values of {columns} that"):
        hooks.conn.execute(f"update weirkeeper.endpoint set {wrong} where id = %s", (one,))


def test_what_it_can_just_be_is_taken(hooks):
    hooks.conn.execute(
        "update weirkeeper.endpoint set owner_id = repeat('x', 200), url = repeat('x', 2048),"
        " description = repeat('x', 500), event_types = array_fill('x'::text, '{100}'), rate = 6000,"
        " schedule = array_fill(1::float8, '{30}'), contact = repeat('x', 254) where id = %s",
        (hooks.endpoint(),),
    )


def test_one_that_is_made_is_checked_too(hooks):
    with pytest.raises(psycopg.errors.CheckViolation, match="expected values of url"):
        hooks.conn.execute(
            "insert into weirkeeper.endpoint (owner_id, url, event_types) values ('me', '', '{x}')"
        )
