"""What is special to nvidia-smi: fields an old driver lacks, a GPU that hides the others, cards told by UUID."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_thermal.model import Missing
from pytest_thermal.sensors.tools import nvidia_smi
from tests.sensors.canned import OUTPUTS, Canned, own_tool, read, values

GPUS = {
    "0": ("GPU-aaaaaaaa-0000", "0000:1a:00.0"),
    "1": ("GPU-bbbbbbbb-0000", "0000:2b:00.0"),
    "2": ("GPU-cccccccc-0000", "0000:3c:00.0"),
}
CELSIUS = {"0": 50, "1": 60, "2": 70}
LOST = (
    "Unable to determine the device handle for GPU0000:2B:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
)


def asked(arguments: Sequence[str]) -> list[str]:
    return next((one.partition("=")[2].split(",") for one in arguments if one.startswith("--query-gpu=")), [])


def answer(arguments: Sequence[str], indices: Sequence[str]) -> str:
    names = asked(arguments)
    known = {
        index: {
            "index": index,
            "uuid": GPUS[index][0],
            "pci.bus_id": GPUS[index][1],
            "temperature.gpu": str(CELSIUS[index]),
        }
        for index in indices
    }
    lines = [", ".join(names)]
    lines += [", ".join(known[index].get(name, "[N/A]") for name in names) for index in indices]
    return "\n".join(lines) + "\n"


class Driver:
    """A driver that knows some fields, and has some GPUs at some indices, of which one may hide all."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()
        self.lost = False
        self.order = ["0", "1", "2"]

    def __call__(self, arguments: Sequence[str]) -> str:
        names = asked(arguments)
        if not names:
            return "nothing of use\n"
        for name in names:
            if name in self.unknown:
                return f'Field "{name}" is not a valid field to query.\n\n'
        chosen = list(arguments)[arguments.index("-i") + 1].split(",") if "-i" in arguments else []
        wanted = [index for index in self.order if not chosen or set(GPUS[index]) & set(chosen)]
        return LOST if self.lost and "1" in wanted else answer(arguments, wanted)


def test_a_field_that_the_driver_does_not_know_is_left_out() -> None:
    driver = Driver()
    driver.unknown = {"temperature.gpu.tlimit", "power.draw.instant"}
    canned = Canned(driver)
    source = own_tool(canned, "nvidia-smi")
    assert source.probe().ok
    assert values(source) == {
        "gpu0.temperature_celsius": 50,
        "gpu1.temperature_celsius": 60,
        "gpu2.temperature_celsius": 70,
    }
    assert not driver.unknown & set(asked(canned.calls[-1]))


def test_a_field_with_an_older_name_is_asked_for_by_it() -> None:
    driver = Driver()
    driver.unknown = {"clocks_event_reasons.active"}
    canned = Canned(driver)
    assert own_tool(canned, "nvidia-smi").probe().ok
    assert any("clocks_throttle_reasons.active" in asked(call) for call in canned.calls)


def test_a_gpu_that_falls_off_the_bus_leaves_the_others_their_series() -> None:
    driver = Driver()
    source = own_tool(Canned(driver), "nvidia-smi")
    assert source.probe().ok
    driver.lost = True
    for _ in range(2):
        readings = read(source)
        assert readings["gpu0.temperature_celsius"].value == 50
        assert readings["gpu2.temperature_celsius"].value == 70
        assert readings["gpu1.temperature_celsius"].missing is Missing.DEVICE_ERROR
        assert "GPU is lost" in readings["gpu1.temperature_celsius"].detail


def test_a_gpu_that_is_lost_from_the_start_is_seen_by_the_kernels_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _, address in GPUS.values():
        (tmp_path / address).mkdir()
    monkeypatch.setattr(nvidia_smi, "_KERNEL_LIST", tmp_path)
    driver = Driver()
    driver.lost = True
    source = own_tool(Canned(driver), "nvidia-smi")
    assert source.probe().ok
    readings = read(source)
    assert {name: reading.value for name, reading in readings.items() if reading.value} == {
        "gpu0.temperature_celsius": 50,
        "gpu2.temperature_celsius": 70,
    }
    lost = readings["gpu_0000_2b_00_0.temperature_celsius"]
    assert lost.missing is Missing.DEVICE_ERROR
    assert "2B:00.0" in lost.detail


def test_a_card_that_vanishes_moves_no_other() -> None:
    canned = Canned(Driver())
    source = own_tool(canned, "nvidia-smi")
    assert source.probe().ok
    # The driver numbers what is left anew: the card that was 2 is called 1 now.
    canned.out = re.sub(r"^2, (GPU-c)", r"1, \1", answer(canned.calls[0], ["0", "2"]), flags=re.MULTILINE)
    assert "1, GPU-c" in canned.out
    readings = read(source)
    assert readings["gpu0.temperature_celsius"].value == 50
    assert readings["gpu2.temperature_celsius"].value == 70
    assert readings["gpu1.temperature_celsius"].missing is Missing.ABSENT


def test_limits_come_from_the_full_query_at_start() -> None:
    def out(arguments: Sequence[str]) -> bytes:
        name = "nvidia-smi_query.txt" if asked(arguments) else "nvidia-smi_xml_v11.txt"
        text = (OUTPUTS / name).read_text("utf-8")
        return text.replace(
            "GPU-5eed0000-1111-2222-3333-0000000000aa", "GPU-5eed0000-1111-2222-3333-000000000002"
        ).encode()

    limits = {sensor.id: dict(sensor.limits) for sensor in own_tool(Canned(out), "nvidia-smi").sensors()}
    assert limits["gpu2.temperature_celsius"] == {"slowdown": 93.0, "shutdown": 96.0}
    assert limits["gpu1.temperature_celsius"] == {}
    assert limits["gpu1.power_watts"] == {"cap": 600.0}


def test_without_the_csv_query_the_table_is_read() -> None:
    def out(arguments: Sequence[str]) -> bytes:
        return (OUTPUTS / "nvidia-smi_table_91_mig.txt").read_bytes() if not arguments else b"unknown option\n"

    assert values(own_tool(Canned(out), "nvidia-smi"))["gpu1.temperature_celsius"] == 42
