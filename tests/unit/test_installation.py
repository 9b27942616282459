"""Names of an installation: which are refused, and what of our texts follows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.config.installation import DEFAULT, check_schema_name, site_schema
from shared.errors import ConfigurationError
from shared.notices.channels import CHANNELS
from shared.postgres.driver.statements import LOCK_CLASS, lock_class, rendered, statement
from shared.postgres.queues.wakes import queue_channel, relay_channel
from tests.support.installations import SECOND, installation

SQL = Path(__file__).resolve().parents[2] / "shared" / "postgres"
LONGEST = "a" * 41
# What is left of our names may stand in sentences and labels only: in quotes, beside other words.
COMMENT = re.compile(r"--[^\n]*")
TEXT = re.compile(r"'(?:[^']|'')*'")


def texts() -> dict[str, str]:
    return {str(p.relative_to(SQL)): p.read_text("utf-8") for p in SQL.rglob("*.sql")}


def leftovers(text: str) -> list[str]:
    """Names of the default installation that a rendered text still has in its code."""
    code = COMMENT.sub("", text)
    quoted = [t for t in TEXT.findall(code) if re.search(r"\b(weirkeeper|site)[._]", t)]
    return quoted + re.findall(r"\b(?:weirkeeper|site\.)\w*", TEXT.sub("''", code))


@pytest.mark.parametrize(
    "name",
    ["", "Upper", "1st", "a-b", 'a"b', "a.b", "ä", "a\n", "a" * 42, "pg_mine", "public", "site",
     "information_schema", "mine_site"],
)  # fmt: skip
def test_other_names_are_refused(name):
    with pytest.raises(ConfigurationError, match=r"WEIRKEEPER_SCHEMA: expected"):
        check_schema_name(name)


def test_the_default_text_is_the_file():
    for path, text in texts().items():
        if path.startswith("sql/"):
            assert statement(path.removeprefix("sql/").removesuffix(".sql")) == text


def test_every_name_of_ours_follows():
    with installation(SECOND):
        left = {
            path: found for path, text in texts().items() if (found := leftovers(rendered(text)))
        }
        assert left == {}
        assert all(str(LOCK_CLASS) not in rendered(text) for text in texts().values())


def test_a_name_left_behind_would_be_seen():
    assert leftovers("select 1 from weirkeeper.job")
    assert leftovers("select to_regclass('weirkeeper.job')")
    assert leftovers("create schema weirkeeper")
    assert leftovers("update site.note set path = ''")
    assert not leftovers("raise 'run weirkeeper migrate'; -- weirkeeper.job")


def test_channels_and_locks_are_its_own():
    with installation(SECOND):
        ours = {relay_channel(), queue_channel(7), *map(rendered, CHANNELS)}
        assert statement("migrator/exists").endswith(
            "to_regclass('second_one.migration') is not null\n"
        )
    assert ours == {f"{SECOND}_{name}" for name in ("relay", "queue_7", "final", "fanout")}
    assert {relay_channel(), queue_channel(7)} == {"weirkeeper_relay", "weirkeeper_queue_7"}
    assert lock_class(DEFAULT) == LOCK_CLASS
    assert lock_class(SECOND) != LOCK_CLASS
    assert 0 <= lock_class(SECOND) < 2**31


def test_the_longest_names_are_not_cut():
    with installation(LONGEST):
        assert len(queue_channel(2**31 - 1)) <= 63
    assert len(site_schema(LONGEST)) <= 63


def test_programs_say_which_installation_is_theirs(monkeypatch):
    with installation("Wrong"), pytest.raises(ConfigurationError):
        statement("migrator/lock")
