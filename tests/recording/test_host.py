"""What a machine says of its drivers and cards."""

from __future__ import annotations

import socket
from pathlib import Path

from pytest_thermal.recording.host import accelerators, drivers, host_facts, node_name


def test_modules_that_are_loaded_say_their_versions(tmp_path: Path) -> None:
    assert drivers(tmp_path) == {}
    for module, version in (("nvidia", "570.86.15\n"), ("ext4", "1\n"), ("amdgpu", "")):
        (tmp_path / "sys/module" / module).mkdir(parents=True)
        (tmp_path / "sys/module" / module / "version").write_text(version)
    assert drivers(tmp_path) == {"nvidia": "570.86.15"}


def test_cards_that_their_driver_lists_are_told_with_model_and_firmware(tmp_path: Path) -> None:
    assert accelerators(tmp_path) == []
    folder = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text(
        "Model: \t\t Invented GPU 9\nIRQ:   \t\t 100\nGPU UUID: \t GPU-1234\nVideo BIOS: \t 96.00.61.00.01\n"
    )
    assert accelerators(tmp_path) == [{"identity": "GPU-1234", "model": "Invented GPU 9", "firmware": "96.00.61.00.01"}]


def test_a_node_goes_by_what_its_site_calls_it_and_its_host_is_told_beside() -> None:
    assert node_name({"THERMAL_NODE": "rack1-n7", "SLURMD_NODENAME": "n7"}) == "rack1-n7"
    assert node_name({"THERMAL_NODE": " ", "SLURMD_NODENAME": "n7"}) == "n7"
    assert node_name({}) == socket.gethostname()
    told = host_facts(node="n7")
    assert (told["name"], told["hostname"]) == ("n7", socket.gethostname())
