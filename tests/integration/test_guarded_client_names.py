"""The guarded client and names that are hostile: that change, lead inside, lead nowhere, take long."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest

from shared.services.calls import BoundedCalls
from shared.services.resolver import NameUnresolved, SystemResolver
from tests.gates.source import ROOT
from tests.support import receivers as r
from tests.support.calls import LONG, SHORT, measured, post
from tests.support.waiting import until
from workers.sideeffects.http.client import GuardedClient


@pytest.fixture
def client() -> GuardedClient:
    return GuardedClient(r.local_policy(), resolver=r.Names())


# Names that are hostile


class Turning:
    """Answers with one address, then with another, and so on: each time it is asked."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = answers
        self.asked = 0

    def resolve(self, host: str, seconds: float, *, as_is: bool) -> list[str]:
        self.asked += 1
        return self._answers[(self.asked - 1) % len(self._answers)]


def both_sides(stack: ExitStack) -> tuple[r.Receiver, r.Receiver]:
    """A receiver that may be called (127.0.0.2), and one at the same port that may not."""
    outside = stack.enter_context(r.Receiver(r.Recording(), host="127.0.0.2"))
    inside = stack.enter_context(r.Receiver(r.Recording(), host="127.0.0.1", port=outside.port))
    return outside, inside


SPELT = (
    "127.1", "2130706433", "0x7f000001", "017700000001", "0x7f.1", "0", "[::]", "[::127.0.0.1]",
    "[2002:7f00:1::1]", "[::ffff:7f00:1]", "localhost", "localhost.", "\u2460.example.org",
)  # fmt: skip
OUTSIDE_ONLY = {"ALLOW": "127.0.0.2/32,127.0.0.3/32,127.0.0.4/32"}


def test_each_call_asks_once_and_judges_what_it_hears():
    names = Turning(["127.0.0.2"], ["127.0.0.1"], ["127.0.0.2", "127.0.0.1"])
    client = GuardedClient(r.local_policy(**OUTSIDE_ONLY), resolver=names)
    with ExitStack() as stack:
        outside, inside = both_sides(stack)
        found = [post(client, f"http://{r.NAME}:{outside.port}/") for _ in range(9)]
        assert (outside.connections, inside.connections) == (3, 0)
    assert names.asked == 9, "a name was resolved twice for one call"
    assert [one.status for one in found[::3]] == [200] * 3
    blocked = [one for one in found if one.status is None]
    assert not any(one.by_url for one in blocked)  # tomorrow's answer may be another
    assert {(one.error, one.rule) for one in blocked} == {("blocked_target", "ip")}
    assert all(one.hidden == "127.0.0.1" and "127.0.0.1" not in one.told for one in blocked)


def in_a_lone_network(what: str, given: object = None) -> dict[str, int]:
    """What tests.support.lone_network tells; skips where that cannot be made."""
    unshare = ["unshare", "--map-root-user", "--mount", "--net"]
    if any(shutil.which(tool) is None for tool in ("unshare", "ip", "mount")) or (
        subprocess.run([*unshare, "true"], check=False, capture_output=True, timeout=20).returncode
    ):
        pytest.skip("needs iproute2 and namespaces")
    done = subprocess.run(
        [*unshare, sys.executable, "-P", "-m", "tests.support.lone_network", what],
        cwd=ROOT, input=json.dumps(given), capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_name_server_that_changes_its_mind_never_leads_inside():
    told = in_a_lone_network("rebinding")
    assert told == {"delivered": 334, "blocked_target": 666, "outside": 334, "inside": 0}


def test_no_spelling_of_a_forbidden_address_causes_a_packet():
    table = json.loads((ROOT / "tests/data/outbound_urls.json").read_text("utf-8"))["cases"]
    given = [case for case in table if case["rule"]]
    given += [
        {"url": f"https://{host}/", "dns": {host: ["127.0.0.1"]}, "policy": {}} for host in SPELT
    ]
    assert len(given) >= 90
    told = in_a_lone_network("refused", given)
    assert told.pop("packets of one that is allowed") > 0
    without_address = told.pop("dns_not_found")
    assert told == {"packets": 0, "blocked_target": len(given) - without_address}
    assert without_address == 1


def test_fifty_addresses():
    good = ["127.0.0.2"] + [f"127.0.0.{n}" for n in range(10, 59)]
    policy = r.local_policy(ALLOW="127.0.0.2/32,127.0.0.0/26")
    with ExitStack() as stack:
        outside = stack.enter_context(r.Receiver(r.Recording(), host="127.0.0.2"))
        url = f"http://{r.NAME}:{outside.port}/"
        assert post(GuardedClient(policy, resolver=Turning(good)), url).status == 200
        bad = GuardedClient(policy, resolver=Turning([*good, "127.0.0.64"]))
        assert post(bad, url).error == "blocked_target"
        assert outside.connections == 1


def test_a_dead_first_address_costs_little():
    policy = r.local_policy(**OUTSIDE_ONLY)
    with ExitStack() as stack:
        outside = stack.enter_context(r.Receiver(r.Recording(), host="127.0.0.2"))
        hole = stack.enter_context(socket.socket())
        hole.bind(("127.0.0.4", outside.port))
        hole.listen(0)
        for _ in range(3):  # its queue is full: what comes now is dropped without a word
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.4", outside.port))
        for dead in ("127.0.0.3", "127.0.0.4"):
            client = GuardedClient(policy, resolver=Turning([dead, "127.0.0.2"]))
            found = post(client, f"http://{r.NAME}:{outside.port}/")
            assert (found.status, found.peer) == (200, f"127.0.0.2:{outside.port}")
            assert found.times["connect"] < LONG.seconds / 2
        alone = GuardedClient(policy, resolver=Turning(["127.0.0.4"]))
        found = post(alone, f"http://{r.NAME}:{outside.port}/", limits=SHORT)
        assert found.error == "connect_timeout"
        alone = GuardedClient(policy, resolver=Turning(["127.0.0.3"]))
        assert post(alone, f"http://{r.NAME}:{outside.port}/").error == "connect_refused"


def test_an_address_without_a_way():
    nowhere = "255.255.255.255"  # the system refuses to connect to it: no packet is sent
    client = GuardedClient(r.local_policy(ALLOW=nowhere), resolver=Turning([nowhere, nowhere]))
    found = post(client, f"http://{r.NAME}:9/")
    assert found.error == "connect_unreachable"
    assert found.peer == ""


def test_a_slow_resolver_takes_no_longer_than_the_call():
    free = threading.Event()
    calls = BoundedCalls("slow", 2)

    class Slow:
        def resolve(self, host: str, seconds: float, *, as_is: bool) -> list[str]:
            def look() -> list[str]:
                free.wait(30)
                return ["127.0.0.1"]

            return calls.call(look, seconds)

    client = GuardedClient(r.local_policy(), resolver=Slow())
    with r.Receiver(r.Recording()) as receiver:
        url = f"http://{r.NAME}:{receiver.port}/"
        for _ in range(3):  # the third finds no thread at all
            found, seconds, late, _ = measured(client, url)
            assert found.error == "dns_timeout"
            assert list(found.times) == ["dns"]
            assert seconds <= SHORT.seconds + 0.5 + late
        slow = [t for t in threading.enumerate() if t.name == "slow"]
        assert len(slow) == 2
        free.set()
        until(lambda: post(client, url).status == 200, 20, "the resolver answers again")


def test_names_without_an_address(client):
    assert post(client, "http://nowhere.example.org/").error == "dns_not_found"
    empty = GuardedClient(r.local_policy(), resolver=Turning([]))
    assert post(empty, f"http://{r.NAME}/").error == "dns_not_found"

    class Broken:
        def resolve(self, host: str, seconds: float, *, as_is: bool) -> list[str]:
            raise NameUnresolved("temporary failure", absent=False)

    assert post(GuardedClient(r.local_policy(), resolver=Broken()), f"http://{r.NAME}/").error == (
        "dns_failed"
    )


def test_the_systems_resolver():
    resolver = SystemResolver()
    assert "127.0.0.1" in resolver.resolve("localhost", 20, as_is=True)
    with pytest.raises(NameUnresolved) as caught:
        resolver.resolve("a" * 64 + ".example.org", 20, as_is=False)
    assert caught.value.absent


def test_a_url_that_is_refused_asks_nobody(client):
    names = r.Names()
    client = GuardedClient(r.local_policy(), resolver=names)
    found = post(client, "https://user:pw@receiver.example.org/")
    assert (found.error, found.rule, found.times) == ("blocked_target", "userinfo", {})
    assert found.by_url
    assert "pw" not in found.told
    assert names.asked == 0
