"""What the URL rules let through is read in the same way by every parser that will meet it."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from shared.webhooks.denied import Denied
from shared.webhooks.urls import Target, take_apart

PIECES = st.sampled_from(
    [
        "https://", "http://", "HTTPS://", "//", "/", ":", "@", "?", "#", "\\", ".", "..", "%", "%2f",
        "%2e", "[", "]", "::1", "::ffff:", "127.0.0.1", "127.1", "0x7f", "017", "0", "443", ":80",
        ":443", ":0", "a", "A", "xn--", "-", "_", "example.org", "h.example.org", "local", "user", ";",
        ",", "&", "=", "+", "~", "*", "'", '"', "`", "{", "}", "|", "^", "<", ">", " ", "\t", "é",
    ]
)  # fmt: skip
HOSTS = st.lists(PIECES, min_size=1, max_size=6).map("".join) | st.sampled_from(
    ["h.example.org", "H.Example.Org.", "xn--h-1ga.example.org", "a_b.c", "93.184.216.34", "[::1]"]
)
PORTS = st.sampled_from(["", "", ":443", ":8443", ":1", ":65535", ":080"])
PATHS = st.lists(PIECES, max_size=8).map("".join)
URLS = st.builds("{}{}{}{}".format, st.just("https://"), HOSTS, PORTS, PATHS) | st.lists(
    PIECES, min_size=1, max_size=12
).map("".join)


def read(url: str) -> Target | None:
    try:
        return take_apart(url)
    except Denied:
        return None


@settings(max_examples=400)
@given(URLS)
@example("https://h.example.org/..//a/./b")
@example('https://h.example.org/"<>`{}|^')
@example("https://h.example.org/%zz%2f?%00&'")
@example("https://[2606:4700::1111]:8443?x")
def test_other_parsers_read_the_same_host_and_port(url):
    target = read(url)
    event("let through" if target else "refused")
    if target is None:
        return
    for spelt in (url, target.url):
        stock = urlsplit(spelt)
        assert (stock.hostname or "").removesuffix(".") == target.host.lower() or ":" in target.host
        assert (stock.port or {"https": 443, "http": 80}[stock.scheme]) == target.port
        assert stock.username is None
    client = httpx.URL(target.url)
    assert client.raw_host.decode() == target.host
    assert (client.port or {"https": 443, "http": 80}[client.scheme]) == target.port
    assert not client.userinfo
    assert not client.fragment


@settings(max_examples=400)
@given(URLS)
def test_the_one_spelling_is_read_as_itself(url):
    target = read(url)
    if target is not None:
        assert take_apart(target.url) == target
        assert "?" not in target.shown.removeprefix("https://")
