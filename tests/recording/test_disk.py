"""What is forced onto the disk, when, and by whom."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_thermal.recording import create_run, seal
from pytest_thermal.recording.disk import DiskSync
from pytest_thermal.recording.keeper import Keeper
from pytest_thermal.recording.layout import RUN
from tests.support.patience import until


class Disk:
    """Takes note of what is synced, and by which thread; may hang."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[str] = []
        self.threads: set[str] = set()
        self.hangs = threading.Event()
        self.goes_on = threading.Event()
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._noted)

    def _noted(self, descriptor: int) -> None:
        self.synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        self.threads.add(threading.current_thread().name)
        if self.hangs.is_set():
            self.goes_on.wait()

    def take(self) -> list[str]:
        taken, self.synced = sorted(self.synced), []
        return taken


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "samples").mkdir(parents=True)
    (folder / RUN).write_text("{}")
    (folder / "samples" / "nvml.csv").write_text("time\n")
    return folder


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, run: Path) -> Iterator[Disk]:
    disk = Disk(monkeypatch)
    yield disk
    disk.goes_on.set()


def test_all_that_anybody_wrote_is_synced_and_what_did_not_change_is_not(run: Path, disk: Disk) -> None:
    sync = DiskSync(run)
    sync.sync()
    # With the entries of its folders: a file that no folder names is lost, however well it is written.
    assert disk.take() == sorted(["nvml.csv", "samples", "run", run.parent.name])
    sync.sync()
    assert disk.take() == []
    with (run / "samples" / "nvml.csv").open("a") as file:
        file.write("1\n")
    (run / "requests.csv").write_text("start\n")  # the load generator's
    sync.sync()
    assert disk.take() == ["nvml.csv", "requests.csv", "run"]


def test_a_run_that_is_deleted_is_nobodys_trouble(run: Path, disk: Disk) -> None:
    sync = DiskSync(run)
    (run / "samples" / "nvml.csv").unlink()
    (run / "samples").rmdir()
    (run / RUN).unlink()
    run.rmdir()
    sync.sync()
    assert "run" not in disk.take()


def test_a_disk_that_hangs_holds_up_nobody_who_writes(run: Path, disk: Disk) -> None:
    keeper = Keeper(run / RUN, sync_seconds=0.05)
    keeper.start()
    until(lambda: "nvml.csv" in disk.synced)
    disk.hangs.set()
    with (run / "samples" / "nvml.csv").open("a") as file:
        file.write("1\n")
    until(lambda: disk.synced.count("nvml.csv") == 2)
    keeper.replace(b"{}\n")
    assert not keeper.finish(lambda: None, timeout_seconds=0.05)
    disk.goes_on.set()
    assert keeper.finish(lambda: None, timeout_seconds=60.0)
    assert (run / RUN).read_bytes() == b"{}\n"
    assert disk.threads == {"thermal-keeper"}


def test_what_was_written_last_is_on_the_disk_before_anything_says_that_it_is_all_there(run: Path, disk: Disk) -> None:
    keeper = Keeper(run / RUN, sync_seconds=60.0)
    keeper.start()
    keeper.replace(b"{ }\n")
    until(lambda: "nvml.csv" in disk.synced)
    with (run / "samples" / "nvml.csv").open("a") as file:
        file.write("1\n")
    disk.take()
    keeper.replace(b"{}\n")
    assert keeper.finish(lambda: None, timeout_seconds=60.0)
    assert "nvml.csv" in disk.synced


def test_a_run_is_synced_before_it_is_sealed_by_whoever_seals_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create_run(tmp_path, facts={})
    (made / "samples" / "gpu.csv").write_text("time\n1\n")
    disk = Disk(monkeypatch)
    seal(made)
    temporary = [name for name in disk.synced if name.endswith(".tmp")]
    assert disk.synced.index("gpu.csv") < disk.synced.index(temporary[0])
