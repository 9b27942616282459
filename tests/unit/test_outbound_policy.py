"""What may be called: the table of URLs, the operator's lists, and each network of the tables."""

from __future__ import annotations

import ipaddress
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.config.env import Environment
from shared.config.outbound import Hosts, Outbound, read_outbound
from shared.errors import ConfigurationError
from shared.webhooks.addresses import IPV4_REFUSED, IPV6_REFUSED, embedded, parse, refused
from shared.webhooks.denied import RULES, Denied
from shared.webhooks.policy import SPECIAL_NAMES, Policy
from shared.webhooks.urls import LONGEST, take_apart
from tests.gates.source import ROOT

CASES = json.loads((ROOT / "tests/data/outbound_urls.json").read_text("utf-8"))["cases"]
PUBLIC = "93.184.216.34"


def outbound(**environ: str) -> Outbound:
    return read_outbound(Environment({f"WEIRKEEPER_OUTBOUND_{k}": v for k, v in environ.items()}))


def policy(**environ: str) -> Policy:
    return Policy(outbound(**environ))


def of_case(case: dict) -> Policy:
    given = case["policy"]
    assert set(given) <= {"nat64", "allow_http", "allow_networks", "ports"}
    return policy(
        NAT64="yes" if given.get("nat64") else "",
        HTTP="yes" if given.get("allow_http") else "",
        ALLOW=",".join(given.get("allow_networks", [])),
        PORTS=",".join(map(str, given.get("ports", []))),
    )


def verdict(judge: Policy, url: str, addresses: list[str] | None = None) -> str:
    """The rule that refuses, or "allow"."""
    try:
        target = judge.check_url(url)
        if target.literal is None:
            judge.check_addresses(target, [PUBLIC] if addresses is None else addresses)
    except Denied as denied:
        return denied.rule
    return "allow"


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['why']}: {c['url'][:40]}")
def test_the_table_of_urls(case):
    resolved = next(iter(case["dns"].values()), [])
    found = verdict(of_case(case), case["url"], resolved)
    assert found == (case["rule"] or "allow")


def test_the_table_is_whole():
    assert len(CASES) == 90
    assert {case["rule"] for case in CASES} - {None} <= set(RULES)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://h.example.org/" + "x" * (LONGEST - 22), "allow"),
        ("https://h.example.org/" + "x" * (LONGEST - 21), "url_length"),
        ("https://h.example.org/#x", "fragment"),
        ("https://h.example.org/#", "fragment"),
        ("https://h.example.org/\x7f", "url_chars"),
        ("https://h.example.org/\x00", "url_chars"),
        ("https://h.example.org\r\nx", "url_chars"),
        ("https://h.example.org:/", "url_parse"),
        ("https://h.example.org:-1/", "url_parse"),
        ("https://h.example.org:+443/", "url_parse"),
        ("https://h..example.org/", "url_parse"),
        ("https://-h.example.org/", "url_parse"),
        ("https://h%2eexample.org/", "url_parse"),
        ("https://127%2e0.0.1/", "numeric_host"),
        ("https://[::1]x/", "url_parse"),
        ("https://[::1/", "url_parse"),
        ("https://[]/", "url_parse"),
        ("https://.example.org/", "url_parse"),
        ("https://" + "a" * 64 + ".example.org/", "url_parse"),
        ("https://" + "a." * 127 + "org/", "url_parse"),
        ("https://:443/", "no_host"),
        ("https:///x", "no_host"),
        ("https:/h.example.org/", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("", "scheme"),
        ("https://user@h.example.org/", "userinfo"),
        ("https://@h.example.org/", "userinfo"),
        ("https://h.example.org/@x", "allow"),
        ("https://h.example.org?x=1", "allow"),
        ("HTTPS://H.EXAMPLE.ORG/", "allow"),
        ("https://256.1.1.1/", "numeric_host"),
        ("https://0177.0.0.1/", "numeric_host"),
        ("https://1.1.1.1./", "allow"),
        ("https://1.2.3.4.5/", "numeric_host"),
        ("https://h.example.0x7f/", "numeric_host"),
        ("https://0x/", "numeric_host"),
        ("https://2130706433/", "numeric_host"),
        ("https://168.63.129.16/", "ip"),
        ("https://a.home.arpa/", "special_name"),
        ("https://x.onion/", "special_name"),
    ],
)
def test_further_urls(url, rule):
    assert verdict(policy(), url) == rule


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_nothing_that_is_read_is_read_twice_in_two_ways(rest):
    """What the rules let through comes back the same when its one spelling is read again."""
    try:
        target = take_apart("https://" + rest)
    except Denied:
        return
    assert take_apart(target.url) == target


def test_where_a_url_leads():
    target = policy().check_url("https://Public.Example.org.:8443/h?token=x")
    assert (target.host, target.port, target.path) == ("public.example.org", 8443, "/h?token=x")
    assert target.url == "https://public.example.org:8443/h?token=x"
    assert "token" not in target.shown
    assert policy().check_url("https://h.example.org:443").url == "https://h.example.org/"
    assert policy().check_url("https://[2606:4700:0:0::1111]/").authority == "[2606:4700::1111]"


@pytest.mark.parametrize(("network", "why"), IPV4_REFUSED + IPV6_REFUSED, ids=str)
def test_each_network_is_refused_from_end_to_end(network, why):
    for address in (network[0], network[-1]):
        assert refused(address, nat64=False)
        assert why


def test_the_neighbours_of_networks_are_not():
    for text in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "2000::",
        "2001:200::",
        "2001:db7::1",
        "2001:db9::1",
        "2003::",
        "2620:4f:7fff::1",
        "3ffe::1",
        "3fff:1000::1",
    ]:
        assert refused(parse(text), nat64=False) == "", text


@given(st.ip_addresses(v=4))
def test_what_is_refused_as_ipv4_is_refused_in_every_disguise(address):
    nat64 = ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) + int(address))
    mapped = ipaddress.IPv6Address((0xFFFF << 32) + int(address))
    six_to_four = ipaddress.IPv6Address((0x2002 << 112) + (int(address) << 80) + 1)
    assert embedded(nat64) == address
    assert refused(nat64, nat64=True) == refused(address, nat64=True)
    for disguised in (nat64, mapped, six_to_four):
        assert refused(disguised, nat64=False)
    with pytest.raises(Denied):
        policy(ALLOW="::/0").check_url(f"https://[{mapped}]/")


def test_one_bad_address_refuses_the_whole_answer():
    target = policy().check_url("https://h.example.org/")
    good = [f"93.184.216.{last}" for last in range(1, 51)]
    assert policy().check_addresses(target, good) == tuple(good)
    for at in (0, 25, 50):
        with pytest.raises(Denied) as caught:
            policy().check_addresses(target, [*good[:at], "10.0.0.1", *good[at:]])
        assert caught.value.rule == "ip"
        assert caught.value.address == "10.0.0.1"
        assert "10.0.0.1" not in str(caught.value), "the owner must not learn what is inside"
    with pytest.raises(Denied):
        policy().check_addresses(target, ["fe80::1%eth0"])


def test_addresses_are_returned_once_in_order():
    target = policy().check_url("https://h.example.org/")
    found = policy().check_addresses(target, [PUBLIC, "2606:4700:0::1", PUBLIC, "2606:4700::1"])
    assert found == (PUBLIC, "2606:4700::1")


def test_the_operator_allows_networks_and_names():
    judge = policy(ALLOW="10.1.0.0/16, fd00::/8, db, hooks.internal.")
    assert verdict(judge, "https://10.1.2.3/") == "allow"
    assert verdict(judge, "https://10.2.0.1/") == "ip"
    assert verdict(judge, "https://[fd00::1]/") == "allow"
    assert verdict(judge, "https://h.example.org/", ["10.1.2.3"]) == "allow"
    assert verdict(judge, "https://db/", ["192.168.1.1"]) == "allow"
    assert verdict(judge, "https://hooks.internal/", ["192.168.1.1"]) == "allow"
    assert verdict(judge, "https://other.internal/") == "special_name"
    assert verdict(judge, "https://sub.db/", ["192.168.1.1"]) == "ip"


def test_the_operators_deny_list_beats_his_allow_list():
    judge = policy(ALLOW="10.0.0.0/8,db", DENY="10.0.0.5/32,evil.example.org", NAT64="yes")
    assert verdict(judge, "https://10.0.0.4/") == "allow"
    assert verdict(judge, "https://10.0.0.5/") == "denied"
    assert verdict(judge, "https://db/", ["10.0.0.5"]) == "denied"
    assert verdict(judge, "https://evil.example.org/") == "denied"
    assert verdict(judge, "https://h.example.org/", ["64:ff9b::a00:5"]) == "denied"
    assert verdict(policy(DENY=f"{PUBLIC}/32"), "https://h.example.org/") == "denied"
    assert verdict(policy(ALLOW="db", DENY="db"), "https://db/") == "denied"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALLOW", "10.0.0.1/8"),
        ("ALLOW", "a b"),
        ("DENY", "10.0.0"),
        ("DENY", "*.example.org"),
        ("PORTS", "443,http"),
        ("PORTS", "0"),
        ("PORTS", "65536"),
        ("HTTP", "maybe"),
        ("NAT64", "1"),
        ("CA", "/nowhere/ca.pem"),
    ],
)
def test_what_the_operator_misspells_is_refused(name, value):
    with pytest.raises(ConfigurationError) as caught:
        outbound(**{name: value})
    assert str(caught.value).startswith(f"WEIRKEEPER_OUTBOUND_{name}: ")


def test_defaults_are_the_strictest():
    assert outbound() == Outbound()
    assert outbound(ALLOW="10.0.0.7").allow == Hosts((ipaddress.ip_network("10.0.0.7/32"),))
    assert "local" in SPECIAL_NAMES
