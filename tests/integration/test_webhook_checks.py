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


@pytest.mark.parametrize(
    "wrong",
    [
        "owner_id = ''",
        "url = ''",
        "description = repeat('x', 501)",
        "event_types = '{}'",
        "headers = '[]'",
        "format = 'xml'",
        "signature = 'v2'",
        "ordering = 'some'",
        "rate = 0",
        "schedule = '{}'",
        "contact = 'a'",
        "enabled = false",
        "disabled_reason = 'gone'",
        "enabled = false, disabled_reason = 'whim', disabled_at = now()",
        "failures = 1",
        "failures = -1, failing_since = now()",
        "failing_since = now()",
        "rate = 5, busy_until = now()",
        "rate = 5, noticed = 7",
    ],
)
def test_what_it_cannot_be_is_refused(hooks, wrong):
    one = hooks.endpoint()
    with pytest.raises(psycopg.errors.CheckViolation, match="expected values of"):
        hooks.conn.execute(f"update weirkeeper.endpoint set {wrong} where id = %s", (one,))


def test_one_that_is_made_is_checked_too(hooks):
    with pytest.raises(psycopg.errors.CheckViolation, match="expected values of url"):
        hooks.conn.execute(
            "insert into weirkeeper.endpoint (owner_id, url, event_types) values ('me', '', '{x}')"
        )
