"""What our programs leave behind is for their own user alone, whatever they were started with."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.servers import Server
from tests.support.processes import Programs
from tests.support.queue import TestQueue, queue

__all__ = ["queue"]


@pytest.fixture
def everybody_reads() -> Iterator[None]:
    """Started by somebody who lets others read what is made."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def masks(pids: list[int]) -> dict[str, str]:
    """What each process takes away from the modes of what it makes, by its command line."""
    found: dict[str, str] = {}
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        [mask] = [line.split()[1] for line in status if line.startswith("Umask:")]
        found[f"{pid} {Path(f'/proc/{pid}/cmdline').read_text()[:200]}"] = mask
    return found


def open_to_others(home: Path) -> dict[str, str]:
    """Files, folders and sockets that others may use, by their modes; links have none of their own.

    Not what the test itself writes there: what it read from the programs.
    """
    modes = {
        path: path.lstat().st_mode for path in (home, *home.rglob("*")) if path.suffix != ".out"
    }
    return {
        str(path.relative_to(home)): stat.filemode(mode)
        for path, mode in modes.items()
        if not stat.S_ISLNK(mode) and mode & 0o077
    }


def test_what_a_server_leaves_is_for_its_user_alone(short_tmp: Path, everybody_reads: None) -> None:
    programs = Programs(short_tmp, "")
    try:
        server = Server(programs).until_ready()
        assert {"run", "log", "metrics"} <= {path.parent.name for path in short_tmp.rglob("*")}
        said = masks(programs.living())
        assert set(said.values()) == {"0077"}, said
        assert len(said) > 10, "children and fork servers, too"
        assert open_to_others(short_tmp) == {}
        assert server.stop() == 0
        assert open_to_others(short_tmp) == {}
    finally:
        programs.close()


def test_so_are_the_files_of_a_program_alone_and_of_its_handlers(
    everybody_reads: None, queue: TestQueue
) -> None:
    queue.programs.home.chmod(0o755)
    program = queue.start()
    queue.begun(queue.enqueue("ok"))
    assert stat.S_IMODE(queue.programs.home.stat().st_mode) == 0o700, (
        "logs of supervisord are in it"
    )
    assert set(masks(queue.programs.living()).values()) == {"0077"}
    (queue.programs.home / "by-the-test").touch()
    assert open_to_others(queue.programs.home) == {"by-the-test": "-rw-r--r--"}
    assert program.running()


def test_so_are_the_files_of_a_command(tmp_path: Path, everybody_reads: None) -> None:
    """What an application writes when it is imported, for example."""
    (tmp_path / "planted.py").write_text(
        "from pathlib import Path\nfrom weirkeeper import App\n"
        "(Path(__file__).parent / f'made-{len(list(Path(__file__).parent.glob(\"made*\")))}').touch()\n"
        "app = App()\n"
    )
    subprocess.run(
        [sys.executable, "-P", "-m", "panel.cli.main", "check"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "WEIRKEEPER_APP": "planted:app",
             "WEIRKEEPER_HOME": str(tmp_path / "home"), "DATABASE_URL": "postgresql://127.0.0.1:1/x"},
        timeout=60, check=False,
    )  # fmt: skip
    made = {path.name: stat.filemode(path.stat().st_mode) for path in tmp_path.glob("made-*")}
    assert set(made.values()) == {"-rw-------"}, made
