"""What is in the wheel and in the sdist, and that an installed wheel knows itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packaging.environments import Environment
from weirkeeper import identity

ROOT = Path(identity.ROOT)
TYPED = {"weirkeeper/py.typed", "shared/py.typed"}  # what applications import, directly or not
LEFT_OUT = shutil.ignore_patterns(
    ".git",
    ".venv",
    ".weirkeeper",
    "build",
    "dist",
    "*.egg-info",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist of this checkout, built without a network."""
    place = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, place / "source", ignore=LEFT_OUT)
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--sdist",
        "--wheel",
        "--outdir",
        place,
    ]
    done = subprocess.run(
        [*command, place / "source"], check=False, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@pytest.fixture(scope="module")
def wheel(built):
    return next(built.glob("*.whl"))


def sources(pattern: str) -> set[str]:
    return {
        str(file.relative_to(ROOT))
        for name in identity.NAMES
        for file in (ROOT / name).rglob(pattern)
        if "__pycache__" not in file.parts
    }


def test_the_wheel_holds_our_packages_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    packaged = {n for n in names if not n.startswith("weirkeeper-0")}
    assert packaged == sources("*.py") | sources("*.sql") | TYPED
    rest = {n.split("/", 1)[1] for n in names - packaged}
    assert "data/share/weirkeeper/supervisord.conf" in {r.split(".data/")[-1] for r in rest}
    assert "licenses/LICENSE" in rest


def test_the_sdist_can_be_built_from(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= sources("*.py") | sources("*.sql")
    assert names >= {
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "supervisord.conf",
        *TYPED,
    }
    assert not {n for n in names if n.startswith((".venv", ".git", "bench/", "docs/"))}


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel in an environment of its own, as pip lays it out."""
    environment = Environment(tmp_path_factory.mktemp("installed"), [])
    zipfile.ZipFile(wheel).extractall(environment.site)
    data = next(environment.site.glob("*.data"))
    shutil.copytree(data / "data", environment.prefix, dirs_exist_ok=True)
    shutil.rmtree(data)
    return environment


def test_an_installed_wheel_checks_itself(installed, tmp_path):
    environ = {"WEIRKEEPER_HOME": str(tmp_path / "home")}
    done = installed.run("-P", "-m", "weirkeeper.server", "--check", cwd=tmp_path, environ=environ)
    assert done.returncode == 0, done.stderr
    assert '"embedded": true' in done.stdout


def test_an_application_sees_types(installed, tmp_path):
    client = tmp_path / "client.py"
    shutil.copyfile(ROOT / "tests" / "packaging" / "typed_client.py", client)
    python = str(installed.prefix / "bin" / "python")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, client.name],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_distribution_over_our_files_is_refused(installed, tmp_path):
    file = installed.site / "shared" / "__init__.py"
    before = file.read_bytes()
    file.write_text("print('DECOY IMPORTED')\n")
    try:
        done = installed.run("-P", "-m", "weirkeeper.identity", "relay", cwd=tmp_path)
    finally:
        file.write_bytes(before)
    assert done.returncode == 78
    assert "DECOY" not in done.stdout
    assert "package shared: expected the files that weirkeeper installed" in done.stderr
    assert installed.run("-P", "-m", "weirkeeper.identity", cwd=tmp_path).returncode == 0
