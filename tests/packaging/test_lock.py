"""The locked requirements: what pyproject.toml asks for, exact, with hashes, without addresses."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from weirkeeper.identity import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
ASKED = {
    "run": [*PROJECT["dependencies"], *EXTRAS["embedded"]],
    "test": [*PROJECT["dependencies"], *EXTRAS["embedded"], *EXTRAS["dev"], *EXTRAS["bench"]],
}


def locked(name: str) -> dict[str, str]:
    text = (ROOT / "script" / f"requirements-{name}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", ASKED)
def test_holds_what_the_project_asks_for(name):
    found = locked(name)
    for wanted in map(Requirement, ASKED[name]):
        if wanted.name == "weirkeeper":
            continue
        version = found.get(wanted.name.lower().replace("_", "-"))
        assert version is not None, f"{wanted.name} is missing: run script/lock"
        assert version in wanted.specifier, f"{wanted} is locked as {version}: run script/lock"


@pytest.mark.parametrize("name", ASKED)
def test_every_package_has_hashes_and_nothing_an_address(name):
    text = (ROOT / "script" / f"requirements-{name}.txt").read_text()
    entries = re.split(r"\n(?=[a-z])", text.split("\n", 2)[2])
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text
    assert "-index" not in text


def test_tests_run_with_what_the_server_runs_with():
    run, test = locked("run"), locked("test")
    assert {name: test.get(name) for name in run} == run
