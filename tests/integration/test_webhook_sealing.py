"""The key that webhook secrets are sealed with is changed, without losing one."""

from __future__ import annotations

import logging

import pytest

from shared.errors import ConfigurationError
from shared.postgres.webhooks.sealing import seal_anew
from shared.webhooks.headers import open_headers
from shared.webhooks.sealing import Sealer
from tests.support.hooks import SECRET, Handling, Hooks
from workers.handlers.maintenance import tidy_webhooks

NEW = "n" * 44


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


def never() -> bool:
    return False


def stored(hooks: Hooks) -> list[tuple[str, bytes]]:
    """(owner, sealed) of every secret, in order."""
    rows = hooks.rows(
        "select e.owner_id, s.sealed from weirkeeper.endpoint_secret s"
        " join weirkeeper.endpoint e on e.id = s.endpoint_id order by s.endpoint_id, s.no"
    )
    return [(row["owner_id"], bytes(row["sealed"])) for row in rows]


def test_everything_is_sealed_with_the_newest_key(hooks):
    for owner in ("me", "you", "me"):
        hooks.endpoint(owner)
    old = Sealer([SECRET])
    before = [old.unseal(sealed, owner) for owner, sealed in stored(hooks)]
    both = Sealer([NEW, SECRET])
    assert seal_anew(hooks.conn, both, never) == 3
    new = Sealer([NEW])
    assert [new.unseal(sealed, owner) for owner, sealed in stored(hooks)] == before
    assert seal_anew(hooks.conn, both, never) == 0, "it was sealed anew once more"


def test_nothing_is_touched_while_there_is_one_key(hooks):
    hooks.endpoint()
    before = stored(hooks)
    assert seal_anew(hooks.conn, Sealer([SECRET]), never) == 0
    assert seal_anew(hooks.conn, Sealer([]), never) == 0
    assert seal_anew(hooks.conn, Sealer([NEW, "o" * 44]), never) == 0, "not of its keys"
    assert stored(hooks) == before


def test_one_that_does_not_open_keeps_no_other_back(hooks, caplog):
    for _ in range(3):
        hooks.endpoint()
    hooks.conn.execute(
        "update weirkeeper.endpoint_secret"
        " set sealed = set_byte(sealed, 30, (get_byte(sealed, 30) + 1) % 256)"
        " where no = (select min(no) from weirkeeper.endpoint_secret)"
    )
    with caplog.at_level(logging.ERROR):
        assert seal_anew(hooks.conn, Sealer([NEW, SECRET]), never) == 2
    assert "stays as it is" in caplog.text
    assert "whsec" not in caplog.text


def test_it_stops_when_it_is_asked_to(hooks):
    hooks.endpoint()
    assert seal_anew(hooks.conn, Sealer([NEW, SECRET]), lambda: True) == 0


def test_the_periodic_job_does_it(hooks, monkeypatch):
    hooks.endpoint()
    monkeypatch.setenv("WEIRKEEPER_SECRET", f"{NEW},{SECRET}")
    monkeypatch.setattr(tidy_webhooks, "enough", lambda _ctx: never)
    done = tidy_webhooks.handle(Handling(hooks.conn), {})
    assert done.result["sealed_anew"] == 1
    [(owner, sealed)] = stored(hooks)
    assert Sealer([NEW]).unseal(sealed, owner).startswith("whsec_")


def test_headers_of_before_are_sealed_and_those_of_an_older_key_anew(hooks):
    plain, sealed = (hooks.endpoint(headers={"X-Token": f"canary {n}"}) for n in range(2))
    bare = hooks.endpoint()
    hooks.conn.execute(
        """update weirkeeper.endpoint set headers = '{"X-Token": "canary 0"}' where id = %s""",
        (plain,),
    )
    old, both = Sealer([SECRET]), Sealer([NEW, SECRET])
    assert open_headers(old, headers(hooks, plain), "me") == {"X-Token": "canary 0"}
    assert seal_anew(hooks.conn, Sealer([]), never) == 0
    assert seal_anew(hooks.conn, old, never) == 1, "the one that was plain"
    assert seal_anew(hooks.conn, both, never) == 2 + 3, "headers of two, secrets of three"
    new = Sealer([NEW])
    found = [headers(hooks, one) for one in (plain, sealed, bare)]
    assert "canary" not in str(found)
    assert [open_headers(new, one, "me").get("X-Token") for one in found] == [
        "canary 0", "canary 1", None,
    ]  # fmt: skip
    assert seal_anew(hooks.conn, both, never) == 0
    with pytest.raises(ConfigurationError, match="copied from another owner"):
        open_headers(new, found[0], "you")
    secret = {"X-Token": {"sealed": stored(hooks)[0][1].hex()}}
    with pytest.raises(ConfigurationError, match="sealed webhook header"):
        open_headers(new, secret, "me")


def headers(hooks: Hooks, endpoint: str) -> dict:
    """As they are stored."""
    return hooks.rows("select headers from weirkeeper.endpoint where id = %s", endpoint)[0][
        "headers"
    ]
