"""On each kind of machine the right temperature is the processor's, or the reason is said why there is none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.model import Missing, Reading
from pytest_thermal.sensors import Source, TellsAbsent
from pytest_thermal.sensors.plausibility import Checked
from pytest_thermal.sensors.sysfs import cpu_temperature, hwmon, rapl, thermal_zones
from tests.sensors.trees import build

UNREADABLE, ABSENT = Missing.UNREADABLE, Missing.ABSENT
NOT_OFFERED, IMPLAUSIBLE = Missing.NOT_OFFERED, Missing.IMPLAUSIBLE

PROCESSORS: dict[str, dict[str, float | Missing]] = {
    "intel_hybrid": {
        "cpu0.package": 71, "cpu0.core0": 69, "cpu0.core4": 71, "cpu0.core12": 68, "cpu0.core28": 60, "cpu0.core29": 61,
    },
    "amd_threadripper": {"cpu0.package": 64.5, "cpu0.ccd1": 63.25, "cpu0.ccd2": 61.75},
    "amd_ccds_only": {"cpu0.package": 69.5, "cpu0.ccd1": 66, "cpu0.ccd2": 69.5},
    "kunpeng": {},
    "phytium_desktop": {"cpu0.package": 52, "cpu1.package": UNREADABLE},
    "phytium_server": {},
    "loongson_mips": {"cpu0.package": 54, "cpu1.package": 50},
    "loongarch": {"cpu0.package": 45},
    "virtual_machine": {},
    "intel_two_sockets": {"cpu0.package": 66, "cpu0.core0": 65, "cpu1.package": 58, "cpu1.core0": 57},
    "zhaoxin": {"cpu0.package": 51, "cpu0.core0": 48, "cpu0.core1": 51},
    "hybrid_labels": {"cpu0.package": 62, "cpu0.p_core_1": 61, "cpu0.e_core_1": 55},
    "arm_board": {"cpu0.package": 53, "cpu0.bigcore0_thermal": 53, "cpu0.littlecore_thermal": 47},
    "soc_without_a_value": {},
    "degrees_by_mistake": {},
}  # fmt: skip


def readings(source: Source) -> dict[str, Reading]:
    return {reading.sensor_id: reading for reading in source.read()}


def absences(source: Source) -> dict[str, Reading]:
    assert isinstance(source, TellsAbsent)
    return {one.sensor.id: one.reading for one in source.absent()}


@pytest.mark.parametrize("tree", PROCESSORS)
def test_the_processors_temperature(tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build(tree, tmp_path, monkeypatch)
    source = Checked(cpu_temperature.make(sysfs=f"{root}", proc=f"{root / 'proc'}"))
    found = {name: reading.missing or reading.value for name, reading in readings(source).items()}
    assert found == {f"{part}.temperature_celsius": value for part, value in PROCESSORS[tree].items()}
    assert source.probe().ok == bool(PROCESSORS[tree])
    source.close()


@pytest.mark.parametrize(
    "tree, words",
    [
        ("kunpeng", ["hns3, nvme, power_meter", "management controller"]),
        ("phytium_server", ["acpitz", "drivetemp", "management controller"]),
        ("virtual_machine", ["no temperature in sysfs", "virtual machine"]),
        ("degrees_by_mistake", ["raw 45", "degrees"]),
        ("soc_without_a_value", ["-274000"]),
    ],
)
def test_without_a_processors_temperature_the_reason_is_said(
    tree: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = build(tree, tmp_path, monkeypatch)
    source = cpu_temperature.make(sysfs=f"{root}", proc=f"{root}")
    absent = absences(source)["cpu0.package.temperature_celsius"]
    for word in words:
        assert word in source.probe().reason
        assert word in absent.detail


@pytest.mark.parametrize(
    "model, celsius",
    [
        ("AMD Ryzen Threadripper 1950X", 51),
        ("AMD Ryzen 7 2700X", 68),
        ("AMD EPYC 9654", 78),
        ("", 78),
    ],
)
def test_the_control_value_of_old_processors_is_corrected(
    model: str, celsius: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = build("amd_old", tmp_path, monkeypatch)
    (root / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: {model}\n")
    source = cpu_temperature.make(sysfs=f"{root}", proc=f"{root}")
    assert readings(source)["cpu0.package.temperature_celsius"].value == celsius
    source.close()


def test_what_is_no_processor_is_not_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build("intel_hybrid", tmp_path, monkeypatch)
    chips = Checked(hwmon.make(sysfs=f"{root}"))
    found = {name: reading.value for name, reading in readings(chips).items()}
    assert found == {
        "nct6798.systin.temperature_celsius": 36,
        "nct6798.cputin.temperature_celsius": 44.5,
        "nct6798.cpu_vrm.temperature_celsius": 93,
        "nct6798.fan2.speed_rpm": 1240,
        "nvme0.temperature_celsius": 44.85,
        "nvme0.sensor_1.temperature_celsius": 46.85,
    }
    limits = {sensor.id: dict(sensor.limits) for sensor in chips.sensors()}
    assert limits["nvme0.temperature_celsius"] == {"max": 81.85, "critical": 84.85}
    assert limits["nvme0.sensor_1.temperature_celsius"] == {}
    absent = absences(chips)
    assert absent["nct6798.pch_chip_cpu_max_temp.temperature_celsius"].missing is IMPLAUSIBLE
    assert "not turned" in absent["nct6798.fan1.speed_rpm"].detail
    chips.close()


def test_zones_that_are_no_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build("intel_hybrid", tmp_path, monkeypatch)
    zones = Checked(thermal_zones.make(sysfs=f"{root}"))
    assert {name: reading.value for name, reading in readings(zones).items()} == {"acpitz0.temperature_celsius": 25.05}
    assert zones.sensors()[0].limits == {"critical": 110.0}
    absent = absences(zones)
    assert absent["int3400_thermal0.temperature_celsius"].detail == "the zone's mode is disabled"
    assert "ENODATA" in absent["iwlwifi_1.temperature_celsius"].detail
    zones.close()


def test_zones_by_number_or_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build("arm_board", tmp_path, monkeypatch)
    zones = thermal_zones.make(sysfs=f"{root}", only="3,soc-thermal")
    assert {sensor.id for sensor in zones.sensors()} == {
        "gpu_thermal0.temperature_celsius", "soc_thermal0.temperature_celsius",
    }  # fmt: skip
    zones.close()
    none = thermal_zones.make(sysfs=f"{root}", only="vpu-thermal")
    assert "vpu-thermal" in none.probe().reason


def test_the_graphics_of_amd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build("amd_threadripper", tmp_path, monkeypatch)
    chips = Checked(hwmon.make(sysfs=f"{root}"))
    found = {name: reading.value for name, reading in readings(chips).items() if name.startswith("amdgpu")}
    assert found == {
        "amdgpu0.temperature_celsius": 58,
        "amdgpu0.edge.temperature_celsius": 49,
        "amdgpu0.memory.temperature_celsius": 62,
        "amdgpu0.power_watts": 61.4,
        "amdgpu0.utilization_percent": 97,
        "amdgpu0.memory.used_bytes": 15032385536,
        "amdgpu0.fan1.speed_rpm": 0,
    }
    assert absences(chips)["nct6775.auxtin0.temperature_celsius"].missing is IMPLAUSIBLE
    chips.close()


def test_energy_that_may_not_be_read_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build("intel_hybrid", tmp_path, monkeypatch)
    source = rapl.make(sysfs=f"{root}")
    assert not source.probe().ok
    assert "EACCES" in source.probe().reason
    assert source.read() == []


def test_a_whole_nodes_meter_and_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = hwmon.make(sysfs=f"{build('kunpeng', tmp_path / 'a', monkeypatch)}")
    assert readings(node)["power_meter0.power_watts"].value == 402
    node.close()
    disk = hwmon.make(sysfs=f"{build('phytium_server', tmp_path / 'b', monkeypatch)}")
    assert disk.read() == []
    assert "wake" in absences(disk)["drivetemp0.temperature_celsius"].detail


def test_chips_keep_their_names_when_their_numbers_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build("intel_two_sockets", tmp_path, monkeypatch)
    before: dict[str, Any] = {}
    for source in (hwmon.make(sysfs=f"{root}"), cpu_temperature.make(sysfs=f"{root}")):
        before.update({sensor.id: (sensor.identity, source.name) for sensor in source.sensors()})
        before.update({name: (*before[name], reading.value) for name, reading in readings(source).items()})
        source.close()
    folder = root / "class" / "hwmon"
    for number, moved in ((5, 50), (6, 60), (7, 70), (8, 80), (50, 8), (60, 7), (70, 6), (80, 5)):
        (folder / f"hwmon{number}").rename(folder / f"hwmon{moved}")
    after: dict[str, Any] = {}
    for source in (hwmon.make(sysfs=f"{root}"), cpu_temperature.make(sysfs=f"{root}")):
        after.update({sensor.id: (sensor.identity, source.name) for sensor in source.sensors()})
        after.update({name: (*after[name], reading.value) for name, reading in readings(source).items()})
        source.close()
    assert before == after
    assert before["nvme0.temperature_celsius"] == ("nvme@nvme0/Composite", "hwmon", 39.85)


def test_a_driver_that_answers_for_who_asks_is_asked_on_each_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = build("loongarch", tmp_path, monkeypatch)
    for cpu in range(4):
        topology = root / "devices" / "system" / "cpu" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{cpu // 2}\n")
    places: list[set[int]] = []
    here: set[int] = {0, 1, 2, 3}

    def setaffinity(_pid: int, cores: set[int]) -> None:
        here.clear()
        here.update(cores)

    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(here))
    monkeypatch.setattr("os.sched_setaffinity", setaffinity)
    pread = os.pread

    def reading(descriptor: int, size: int, offset: int) -> bytes:
        places.append(set(here))
        return pread(descriptor, size, offset)

    monkeypatch.setattr("os.pread", reading)
    source = cpu_temperature.make(sysfs=f"{root}")
    assert [sensor.id for sensor in source.sensors()] == [
        "cpu0.package.temperature_celsius", "cpu1.package.temperature_celsius",
    ]  # fmt: skip
    places.clear()
    source.read()
    assert places == [{0, 1}, {2, 3}]
    assert here == {0, 1, 2, 3}
    assert source.sensors()[0].limits == {"shutdown": 96.0}
    source.close()
