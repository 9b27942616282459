"""What hostile receivers cost, and the rival of webhooks: each measurement runs to its end."""

from __future__ import annotations

import json

import pytest

from bench import hostile
from bench.support.bare_posts import bare_posts, https_receiver


@pytest.mark.soak
@pytest.mark.slow
def test_what_hostile_receivers_cost_is_reported(capsys):
    code = hostile.main(["--seconds", "2"])
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["name"] == "hostile"
    assert last["ours"] > 2
    assert [also["name"] for also in last["also"]] == ["memory"]
    assert last["also"][0]["ok"] is True
    assert code == (1 if last["ok"] is False else 0)


@pytest.mark.soak
@pytest.mark.slow
def test_bare_posts_arrive():
    with https_receiver() as receiver:
        assert bare_posts(receiver, 2, 1.0).rate > 0
