"""deploy/weirkeeper.service: what systemd reads, and that it leaves a stop its time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from configparser import RawConfigParser

import pytest

from tests.support.processes import ROOT
from weirkeeper.server import compose

FILE = ROOT / "deploy" / "weirkeeper.service"


def test_a_stop_in_order_fits_before_systemd_kills(tmp_path):
    unit = RawConfigParser(strict=False)
    unit.read(FILE)
    shipped = compose.read(tmp_path)
    groups = [
        [name.strip() for name in shipped[section]["programs"].split(",")]
        for section in shipped.sections()
        if section.startswith("group:")
    ]
    # Groups end one after the other, the members of each together.
    longest = sum(
        max(shipped.getint(f"program:{name}", "stopwaitsecs") for name in names) for names in groups
    )
    service = unit["Service"]
    assert service.getint("TimeoutStopSec") > longest + compose.MARGIN
    assert service["KillMode"] == "mixed"  # SIGTERM to supervisord alone
    assert service["ExecStartPre"].endswith("/weirkeeper check --supervisord")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_systemd_reads_it(tmp_path):
    text = FILE.read_text().replace("User=weirkeeper", "User=root")
    for program in ("weirkeeper", "supervisord"):
        text = text.replace(f"/srv/weirkeeper/.venv/bin/{program}", sys.executable)
    (tmp_path / FILE.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / FILE.name)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert FILE.name not in done.stderr, done.stderr
    assert done.returncode == 0
