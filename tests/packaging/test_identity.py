"""A foreign `shared`, `metrics` or `workers` never runs in our name: we refuse, or run ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.packaging.environments import Environment
from weirkeeper import identity

ROOT = Path(identity.ROOT)
PROGRAMS = (("relay",), ("workers", "index"), ("listener",), ("metrics",))
FOREIGN = ("shared", "metrics", "workers")


@pytest.fixture
def decoys(tmp_path):
    """Plant a foreign package; return the folder that holds it."""

    def plant(name: str) -> Path:
        package = tmp_path / "foreign" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("print('DECOY IMPORTED')\n")
        (package / "__main__.py").write_text("print('DECOY RUNS')\n")
        return package.parent

    return plant


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """Our own environment: the checkout and what it depends on."""
    return Environment(tmp_path_factory.mktemp("ours"), [ROOT])


def refused(done, name):
    assert "DECOY" not in done.stdout
    assert done.returncode == 78, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"weirkeeper: package {name}: expected {ROOT / name}")
    assert f"foreign/{name}/__init__.py" in done.stderr


def ran_ours(done):
    assert "DECOY" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
    assert '"log_level"' in done.stdout


def test_all_names_are_ours_here():
    assert identity.find_intruder() == ""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0])
@pytest.mark.parametrize("name", FOREIGN)
def test_as_supervisord_starts_it_a_decoy_on_pythonpath_is_refused(
    ours, decoys, tmp_path, name, program
):
    environ = {"PYTHONPATH": str(decoys(name))}
    refused(
        ours.run(
            "-P", "-m", "weirkeeper.identity", *program, "--check", cwd=tmp_path, environ=environ
        ),
        name,
    )


@pytest.mark.parametrize("name", FOREIGN)
def test_a_decoy_in_the_working_folder_is_not_even_seen(ours, decoys, tmp_path, name):
    environ = {
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "WEIRKEEPER_HOME": str(tmp_path / "home"),
    }
    folder = decoys(name)
    for program in PROGRAMS:
        ran_ours(
            ours.run(
                "-P", "-m", "weirkeeper.identity", *program, "--check", cwd=folder, environ=environ
            )
        )


@pytest.mark.parametrize("program", [*PROGRAMS, ("panel.cli.main", "check")], ids=lambda p: p[0])
@pytest.mark.parametrize("name", ["shared", "weirkeeper"])
def test_without_p_each_program_refuses_a_foreign_library_itself(ours, decoys, name, program):
    """Also one that bears the name of the check itself."""
    refused(ours.run("-m", *program, "--check", cwd=decoys(name)), name)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_decoy_that_a_pth_file_puts_before_us_is_refused(decoys, tmp_path, name):
    environment = Environment(tmp_path / "env", [decoys(name), ROOT])
    refused(
        environment.run("-P", "-m", "weirkeeper.identity", "workers", "index", cwd=tmp_path), name
    )


@pytest.mark.parametrize("name", ["shared", "weirkeeper"])
def test_a_command_refuses_before_it_imports_anything_foreign(ours, decoys, tmp_path, name):
    environ = {"PYTHONPATH": str(decoys(name))}
    done = ours.run("-P", "-m", "panel.cli.main", "jobs", "list", cwd=tmp_path, environ=environ)
    refused(done, name)


def test_the_server_refuses_before_it_starts_anything(ours, decoys, tmp_path):
    home = tmp_path / "home"
    environ = {"PYTHONPATH": str(decoys("metrics")), "WEIRKEEPER_HOME": str(home)}
    refused(ours.run("-P", "-m", "weirkeeper.server", cwd=tmp_path, environ=environ), "metrics")
    assert not home.exists()


def test_a_package_that_is_missing_is_told(tmp_path):
    shutil.copytree(ROOT / "weirkeeper", tmp_path / "site" / "weirkeeper")
    environment = Environment(tmp_path / "env", [tmp_path / "site"])
    done = environment.run("-P", "-m", "weirkeeper.identity", "relay", cwd=tmp_path)
    assert done.returncode == 78
    assert "package shared: expected" in done.stderr
    assert "got nothing that can be imported" in done.stderr
