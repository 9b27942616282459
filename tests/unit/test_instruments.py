"""Instruments: one file set a slot, which survives lives, stays bounded and can be damaged."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from metrics.files import merged
from shared.errors import ConfigurationError
from shared.telemetry import slotwriter
from shared.telemetry.instruments import Instruments, open_instruments
from shared.telemetry.series import MAX_SERIES
from shared.telemetry.slotfile import Damaged, entries
from shared.telemetry.slots import is_live


@pytest.fixture
def home(tmp_path: Path):
    return tmp_path


@pytest.fixture
def opened(home):
    made: list[Instruments] = []

    def open_slot(slot: str = "index") -> Instruments:
        made.append(open_instruments(home, slot))
        return made[-1]

    yield open_slot
    for each in made:
        each.close()


def values(home: Path) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in merged(home / "metrics").families
        for sample in family.samples
    }


def value(home: Path, name: str, **labels: str) -> float:
    return values(home)[f"weirkeeper_{name}", tuple(sorted(labels.items()))]


def test_slots_are_summed_and_gauges_told_by_slot(opened, home):
    first, second = opened("index"), opened("index-2")
    for instruments, n in ((first, 2), (second, 3)):
        instruments.jobs_claimed_total.labels("index").inc(n)
        instruments.pool_slots.labels("index").set(n)
        instruments.claim_seconds.labels("index").observe(n)
    assert value(home, "jobs_claimed_total", queue="index") == 5
    assert value(home, "pool_slots", queue="index", slot="index") == 2
    assert value(home, "pool_slots", queue="index", slot="index-2") == 3
    assert value(home, "claim_seconds_sum", queue="index") == 5
    assert value(home, "claim_seconds_count", queue="index") == 2
    assert value(home, "claim_seconds_bucket", queue="index", le="1.0") == 0
    assert value(home, "claim_seconds_bucket", queue="index", le="2.5") == 1
    assert value(home, "claim_seconds_bucket", queue="index", le="+Inf") == 2


def test_many_observations_at_once_are_as_many_by_themselves(opened, home):
    series = opened().job_pickup_seconds.labels("index")
    series.observe_each([0.5, 0.5, 2, 700])
    series.observe(0.25, times=3)
    assert value(home, "job_pickup_seconds_sum", queue="index") == 703.75
    assert value(home, "job_pickup_seconds_count", queue="index") == 7
    assert value(home, "job_pickup_seconds_bucket", queue="index", le="0.25") == 3
    assert value(home, "job_pickup_seconds_bucket", queue="index", le="0.5") == 5
    assert value(home, "job_pickup_seconds_bucket", queue="index", le="600.0") == 6


def test_prometheus_own_reader_reads_the_same(opened, home):
    instruments = opened()
    instruments.jobs_claimed_total.labels("index").inc(2)
    instruments.job_run_seconds.labels("index", "corpus.index").observe(0.02)
    theirs = {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in MultiProcessCollector(CollectorRegistry(), str(home / "metrics")).collect()
        for s in family.samples
    }
    assert theirs == values(home)


def test_counters_survive_a_life_and_gauges_do_not(opened, home):
    first = opened()
    first.jobs_claimed_total.labels("index").inc(7)
    first.pool_slots.labels("index").set(4)
    first.close()
    assert value(home, "jobs_claimed_total", queue="index") == 7
    assert ("weirkeeper_pool_slots", (("queue", "index"), ("slot", "index"))) not in values(home)
    second = opened()
    second.jobs_claimed_total.labels("index").inc()
    assert value(home, "jobs_claimed_total", queue="index") == 8
    assert not [key for key in values(home) if key[0] == "weirkeeper_pool_slots"]


def test_a_thousand_lives_do_not_grow_the_folder(home):
    """Counters never fall, the folder stays as it was."""
    sizes = set()
    for life in range(1, 201):
        instruments = open_instruments(home, "index")
        instruments.jobs_claimed_total.labels("index").inc(5)
        instruments.job_run_seconds.labels("index", "corpus.index").observe(life)
        instruments.close()
        sizes.add(sum(f.stat().st_size for f in (home / "metrics").iterdir()))
        assert value(home, "jobs_claimed_total", queue="index") == 5 * life
    assert len(sizes) == 1
    assert len(list((home / "metrics").iterdir())) == 3, "counters, histograms, lock"


def test_a_process_that_is_killed_loses_nothing_and_frees_its_slot(home):
    program = (
        "import os, sys, signal; from pathlib import Path\n"
        "from shared.telemetry.instruments import open_instruments\n"
        "i = open_instruments(Path(sys.argv[1]), 'index')\n"
        "i.jobs_claimed_total.labels('index').inc(3)\n"
        "i.pool_busy_slots.labels('index').set(2)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).resolve().parents[2]
    for n in (1, 2):
        ended = subprocess.run(
            [sys.executable, "-c", program, home], cwd=root, timeout=30, check=False
        )
        assert ended.returncode == -9
        assert value(home, "jobs_claimed_total", queue="index") == 3 * n
        assert not is_live(home / "metrics", "index")
        assert not [key for key in values(home) if key[0] == "weirkeeper_pool_busy_slots"]


def test_a_live_slot_is_refused_to_another(opened, home):
    first = opened()
    assert is_live(home / "metrics", "index")
    with pytest.raises(ConfigurationError, match=r"--slot: expected a slot that no live process"):
        open_instruments(home, "index")
    assert is_live(home / "metrics", "index")
    first.close()
    first.close()
    opened()


@pytest.mark.parametrize("slot", ["", "../x", "a_b", "A", "-a", "x" * 64, "a/b", "a.b"])
def test_a_bad_slot_name_is_refused(home, slot):
    with pytest.raises(ConfigurationError, match=r"--slot: expected a match of"):
        open_instruments(home, slot)


def test_the_folder_is_ours_alone(home):
    open_instruments(home, "index").close()
    assert (home / "metrics").stat().st_mode & 0o777 == 0o700
    (home / "elsewhere").mkdir()
    other = home / "other"
    other.mkdir()
    (other / "metrics").symlink_to(home / "elsewhere")
    with pytest.raises(ConfigurationError, match="not a link"):
        open_instruments(other, "index")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_refused(home):
    (home / "metrics").mkdir()
    os.chown(home / "metrics", 12345, 12345)
    with pytest.raises(ConfigurationError, match="to be a folder of user 0"):
        open_instruments(home, "index")


def test_label_values_beyond_the_cap_become_other(opened, home):
    """Names from data cannot make the files grow without end."""
    instruments = opened()
    for n in range(MAX_SERIES + 50):
        instruments.jobs_claimed_total.labels(f"queue-{n}").inc()
    assert value(home, "jobs_claimed_total", queue="other") == 50
    counted = [key for key in values(home) if key[0] == "weirkeeper_jobs_claimed_total"]
    assert len(counted) == MAX_SERIES + 1


def test_a_counter_never_falls(opened):
    with pytest.raises(ValueError, match="never falls"):
        opened().relay_jobs_enqueued_total.inc(-1)
    with pytest.raises(ValueError, match="expected labels"):
        opened("other").jobs_claimed_total.labels()


def test_threads_lose_no_count(opened, home):
    instruments = opened()

    def work() -> None:
        for _ in range(2000):
            instruments.jobs_claimed_total.labels("index").inc()
            instruments.claim_batch_size.labels("index").observe(3)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value(home, "jobs_claimed_total", queue="index") == 8000
    assert value(home, "claim_batch_size_count", queue="index") == 8000


def test_the_age_of_a_loop_grows_by_itself(opened, home):
    instruments = opened()
    instruments.turned("claims")
    first = value(home, "loop_age_seconds", loop="claims", slot="index")
    second = value(home, "loop_age_seconds", loop="claims", slot="index")
    assert 0 <= first < second < 5
    assert instruments.stuck(60) == []
    assert instruments.stuck(-1) == ["claims"]


def noise(path: Path, data: bytes) -> None:
    path.write_bytes(data + b"\0" * 64)


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        os.urandom(4096),
        struct.pack("i", 1 << 30),
        struct.pack("i", -5),
        struct.pack("iii", 60, 0, -12),
        struct.pack("iii", 60, 0, 1 << 30),
        struct.pack("iii", 60, 0, 4) + b"null",
        struct.pack("iii", 60, 0, 20) + b'["a","b",{"c":1},""]',
        b"<html>no</html>" * 100,
    ],
    ids=range(9),
)
def test_a_damaged_file_is_skipped_and_counted(opened, home, data):
    opened("relay").relay_jobs_enqueued_total.inc(4)
    path = home / "metrics" / "counter_index.db"
    path.write_bytes(data) if data == b"\0" else noise(path, data)
    with pytest.raises(Damaged):
        entries(path)
    found = merged(home / "metrics")
    assert found.damaged == 1
    assert value(home, "relay_jobs_enqueued_total") == 4
    # Who writes it begins anew instead of failing.
    opened("index").jobs_claimed_total.labels("index").inc(2)
    assert merged(home / "metrics").damaged == 0
    assert value(home, "jobs_claimed_total", queue="index") == 2


def test_every_way_to_cut_a_file_is_seen(opened, home):
    instruments = opened()
    instruments.jobs_claimed_total.labels("index").inc()
    instruments.close()
    path = home / "metrics" / "counter_index.db"
    whole = path.read_bytes()
    (used,) = struct.unpack_from("i", whole)
    for length in range(0, used, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(Damaged):
            entries(path)
    path.write_bytes(whole[:used])
    assert entries(path)


def test_a_full_disk_costs_the_numbers_only(home, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(slotwriter.os, "posix_fallocate", full)
    instruments = open_instruments(home, "index")
    instruments.jobs_claimed_total.labels("index").inc(2)
    instruments.job_run_seconds.labels("index", "a").observe(1)
    assert instruments.jobs_claimed_total.labels("index").get() == 2
    instruments.close()


def test_updates_after_the_end_do_no_harm(opened):
    instruments = opened()
    instruments.close()
    instruments.jobs_claimed_total.labels("index").inc()
    instruments.jobs_claimed_total.labels("new").inc()


def test_a_file_grows_when_it_is_full_and_keeps_what_is_in_it(home):
    path = home / "counter_x.db"
    file = slotwriter.SlotWriter(path, 4096)
    keys = [
        slotwriter.entry_key("weirkeeper_f", "weirkeeper_f_total", ["kind"], [f"k{n}"], "help")
        for n in range(200)
    ]
    for n, key in enumerate(keys):
        assert file.read(key) == 0
        file.write(key, n)
    assert path.stat().st_size > 4096
    file.close()
    file.close()
    assert [entry.value for entry in entries(path)] == list(range(200))
    again = slotwriter.SlotWriter(path, 4096)
    assert [again.read(key) for key in keys] == list(range(200))
    again.close()


def test_what_a_full_disk_has_no_place_for_is_forgotten(home, monkeypatch):
    file = slotwriter.SlotWriter(home / "counter_x.db", 4096)
    file.write("first", 1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(slotwriter.os, "posix_fallocate", full)
    file.write("x" * 8192, 2)
    assert (file.read("x" * 8192), file.read("first")) == (0, 1)
    file.close()
