"""The open child protocol, pure: lines from bytes; and its page says what the code says."""

from __future__ import annotations

import random
import re
from typing import get_args, get_type_hints

import msgspec
import pytest

from shared.config.env import MINIMAL
from tests.gates.source import ROOT
from workers.pool import lines, programs
from workers.pool.lines import Hello, Lines, Log, Progress, ProtocolError, Told, read

PAGE = (ROOT / "docs/child_protocol.md").read_text("utf-8")


def test_lines_come_whole_however_they_were_cut():
    text = "".join(f"{'é' * n}\n" for n in range(200)).encode()
    chance = random.Random(3)
    for _ in range(50):
        told, reader, rest = [], Lines(), text
        while rest:
            size = chance.randint(1, 400)
            told += reader.feed(rest[:size])
            rest = rest[size:]
        assert told == text.split(b"\n")[:-1]


def test_a_line_may_be_as_long_as_said_and_no_longer():
    assert list(Lines(10).feed(b"x" * 10 + b"\n")) == [b"x" * 10]
    for data in (b"x" * 11, b"ok\n" + b"x" * 11 + b"\n"):
        with pytest.raises(ProtocolError, match="a line of more than 10 bytes: 'xxxxxxxxxxx"):
            list(Lines(10).feed(data))
    cut = Lines(10)
    list(cut.feed(b"x" * 6))
    with pytest.raises(ProtocolError):
        list(cut.feed(b"x" * 6))


def test_lines_before_a_long_one_are_told():
    told = Lines(3).feed(b"a\nb\ncccc\n")
    assert [next(told), next(told)] == [b"a", b"b"]
    with pytest.raises(ProtocolError):
        next(told)


def test_fields_that_are_not_known_are_ignored():
    assert read(b'{"type":"hello","mood":"good"}') == Hello()
    assert read(b'{"type":"log","text":"x","id":"1"}') == Log("x")


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"null", b'"hello"', b'{"type":1}'])
def test_what_is_no_message_is_refused(line: bytes):
    with pytest.raises(ProtocolError):
        read(line)


def test_the_page_names_every_field():
    for struct in (Hello, Told, Progress, Log):
        for field in msgspec.structs.fields(struct):
            assert f"`{field.name}`" in PAGE, (struct, field.name)
    outcomes = set(
        re.findall(r"^\| `(\w+)` \| .* \| (?:done|a try|not now|failed|it was)", PAGE, re.MULTILINE)
    )
    assert outcomes == set(get_args(get_type_hints(Told)["outcome"]))


def test_the_page_has_the_numbers_of_the_code():
    assert f"no hello within {programs.BOOT:g} s" in PAGE
    assert f"longer than {lines.LONGEST // 1024} KiB" in PAGE
    names = " ".join(name for name in MINIMAL if not name.startswith("WEIRKEEPER_"))
    assert f"`{names}`" in PAGE
    assert f"leave, within {programs.LEAVE:g} s" in PAGE
