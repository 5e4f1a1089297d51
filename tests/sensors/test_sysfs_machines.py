"""Machines with several dies, sockets and clusters: a temperature is its own processor's, or the reason is said."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_thermal.model import Missing, Reading
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.recording.naming import Naming
from pytest_thermal.sensors import Source
from pytest_thermal.sensors.plausibility import Checked
from pytest_thermal.sensors.sysfs import cpu_temperature, hwmon, thermal_zones
from tests.sensors.damage import cheaply

HWMON, ZONES = "class/hwmon/hwmon", "class/thermal/thermal_zone"


def tree(root: Path, files: Mapping[str, object]) -> Path:
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.name == "device":
            target = root / "devices" / f"{content}"
            target.mkdir(parents=True, exist_ok=True)
            file.symlink_to(target)
        else:
            file.write_text(f"{content}\n")
    return root


def chip(number: int, name: str, place: str = "", **inputs: object) -> dict[str, object]:
    """``temp1="Tdie 61500"``: label and raw number; ``temp1_fault=1``: that file."""
    files: dict[str, object] = {f"{HWMON}{number}/name": name}
    if place:
        files[f"{HWMON}{number}/device"] = place
    for key, told in inputs.items():
        if "_" in key:
            files[f"{HWMON}{number}/{key}"] = told
            continue
        label, _, raw = f"{told}".rpartition(" ")
        files[f"{HWMON}{number}/{key}_input"] = raw
        files.update({f"{HWMON}{number}/{key}_label": label} if label else {})
    return files


def zone(number: int, kind: str, raw: object) -> dict[str, object]:
    return {f"{ZONES}{number}/type": kind, f"{ZONES}{number}/temp": raw}


def sockets(count: int) -> dict[str, object]:
    return {f"devices/system/cpu/cpu{cpu}/topology/physical_package_id": cpu for cpu in range(count)}


def processors(root: Path) -> Source:
    return Checked(cpu_temperature.make(sysfs=f"{root}", proc=f"{root / 'proc'}"))


def read(source: Source) -> dict[str, Reading]:
    return {reading.sensor_id.removesuffix(".temperature_celsius"): reading for reading in source.read()}


def values(source: Source) -> dict[str, float | None]:
    return {name: reading.value for name, reading in read(source).items()}


def amd(nodes: Mapping[int, int]) -> dict[str, object]:
    """By node: its Tdie in millidegrees, with hwmon numbers that say nothing."""
    files: dict[str, object] = {}
    for order, (node, raw) in enumerate(sorted(nodes.items(), reverse=True)):
        place = f"0000:00:{0x18 + node:02x}.3"
        files |= chip(order + 3, "k10temp", place, temp1=f"Tctl {raw + 10000}", temp2=f"Tdie {raw}")
    return files


def test_the_dies_of_a_processor_are_no_processors(tmp_path: Path) -> None:
    raws = {node: 50_000 + 1000 * node for node in range(8)}
    found = values(processors(tree(tmp_path, {**amd(raws), **sockets(2)})))
    assert found == {
        "cpu0.package": 53, "cpu0.die0": 50, "cpu0.die1": 51, "cpu0.die2": 52, "cpu0.die3": 53,
        "cpu1.package": 57, "cpu1.die0": 54, "cpu1.die1": 55, "cpu1.die2": 56, "cpu1.die3": 57,
    }  # fmt: skip


def test_a_node_that_is_lost_moves_no_other_into_the_first_processor(tmp_path: Path) -> None:
    raws = {node: 50_000 + 1000 * node for node in range(8) if node != 2}
    found = values(processors(tree(tmp_path, {**amd(raws), **sockets(2)})))
    assert found["cpu0.package"] == 53
    assert found["cpu1.package"] == 57
    # Of two sockets of one die each, the second alone.
    alone = values(processors(tree(tmp_path / "rome", {**amd({1: 61_000}), **sockets(2)})))
    assert alone == {"cpu1.package": 61}


def test_where_the_kernel_says_on_which_node_a_chip_is_that_counts(tmp_path: Path) -> None:
    """Of the second socket's four dies none has a driver: by their count alone, these would be two and two."""
    files = {**amd({0: 50_000, 1: 51_000, 2: 52_000, 3: 53_000}), **sockets(2)}
    for number in (3, 4, 5, 6):
        files[f"devices/{files[f'{HWMON}{number}/device']}/numa_node"] = 6 - number
    for node in range(8):
        files[f"devices/system/node/node{node}/cpulist"] = f"{node // 4}"
    found = values(processors(tree(tmp_path, files)))
    assert {name for name in found if "die" not in name} == {"cpu0.package"}
    assert found["cpu0.package"] == 53


def test_the_dies_of_one_processor_have_its_hottest(tmp_path: Path) -> None:
    found = values(processors(tree(tmp_path, {**amd({0: 61_000, 1: 64_500}), **sockets(1)})))
    assert found == {"cpu0.package": 64.5, "cpu0.die0": 61, "cpu0.die1": 64.5}


def test_two_dies_that_call_themselves_one_package_are_one(tmp_path: Path) -> None:
    files = {
        **chip(0, "coretemp", "coretemp.0", temp1="Package id 0 61000", temp2="Core 0 60000"),
        **chip(1, "coretemp", "coretemp.1", temp1="Package id 0 72000", temp2="Core 0 70000"),
        **sockets(1),
    }
    assert values(processors(tree(tmp_path, files))) == {
        "cpu0.package": 72, "cpu0.die0": 61, "cpu0.die1": 72, "cpu0.die0_core0": 60, "cpu0.die1_core0": 70,
    }  # fmt: skip


def test_cores_without_a_package_are_of_the_processor_their_driver_names(tmp_path: Path) -> None:
    files = {**chip(0, "coretemp", "coretemp.1", temp2="Core 0 60000", temp3="Core 1 66000"), **sockets(2)}
    assert values(processors(tree(tmp_path, files)))["cpu1.package"] == 66


@pytest.mark.parametrize(
    "files, expected",
    [
        (chip(2, "apm_xgene", "APMC0D29:00", temp1="SoC Temperature 58000", power1="CPU power 61000000"),
         {"cpu0.package": 58}),
        ({**chip(2, "apm_xgene", "APMC0D29:01", temp1="SoC Temperature 58000"),
          **chip(3, "apm_xgene", "APMC0D29:00", temp1="SoC Temperature 51000"), **sockets(2)},
         {"cpu0.package": 51, "cpu1.package": 58}),
        # Clusters of one chip, by whatever number.
        ({**chip(0, "scmi_sensors", temp1="CPU_TEMP_0 50000", temp2="CPU_TEMP_1 55000"), **sockets(1)},
         {"cpu0.package": 55, "cpu0.cpu_temp_0": 50, "cpu0.cpu_temp_1": 55}),
        ({**chip(0, "scmi_sensors", temp1="CPU_TEMP_0 50000", temp2="CPU_TEMP_1 55000"), **sockets(2)},
         {"cpu0.package": 50, "cpu1.package": 55}),
        ({**zone(0, "cpu-thermal0", 50_000), **zone(1, "cpu-thermal1", 57_000), **sockets(1)},
         {"cpu0.package": 57, "cpu0.zone0": 50, "cpu0.zone1": 57}),
        # A device tree's package numbers are clusters.
        ({**zone(0, "cpu-thermal", 50_000), **sockets(3), "firmware/devicetree/base/compatible": "maker,board"},
         {"cpu0.package": 50}),
    ],
)  # fmt: skip
def test_boards_and_servers_without_a_driver_of_their_own(
    files: dict[str, object], expected: dict[str, float], tmp_path: Path
) -> None:
    assert values(processors(tree(tmp_path, files))) == expected


@pytest.mark.parametrize(
    "files, words",
    [
        ({**chip(2, "apm_xgene", temp1="SoC Temperature 58000"), **sockets(2)}, ["1 chips apm_xgene", "2 processors"]),
        ({**zone(0, "cpu-thermal", 50_000), **sockets(2)}, ["1 zones cpu-thermal", "2 processors"]),
        ({**zone(0, "cluster0-thermal", 50_000), **zone(1, "cluster1-thermal", 51_000), **sockets(2)}, ["cluster1"]),
        (chip(0, "k10temp", temp1="Something 50000"), ["none of the temperatures", "k10temp"]),
        ({**chip(0, "scmi_sensors", temp1="CPU_PROC_TEMP 50000"), **sockets(2)}, ["2 processors", "CPU_PROC_TEMP"]),
    ],
)
def test_where_it_cannot_be_told_which_processor_is_meant_it_is_none(
    files: dict[str, object], words: list[str], tmp_path: Path
) -> None:
    source = processors(tree(tmp_path, files))
    assert source.sensors() == ()
    for word in words:
        assert word in source.probe().reason


@pytest.mark.parametrize("raw", [-128, -1, 1, 45, 127, 255, 450, 999, -45])
def test_what_is_no_millidegree_is_no_temperature(raw: int, tmp_path: Path) -> None:
    files = {**chip(0, "nct6775", temp1="SYSTIN 30000", temp2="AUX 30000"), **zone(0, "cpu-thermal", raw)}
    root = tree(tmp_path, files)
    board = Checked(hwmon.make(sysfs=f"{root}", proc=f"{root}"))
    assert sorted(filter(None, values(board).values())) == [30, 30]
    (root / f"{HWMON}0/temp2_input").write_text(f"{raw}\n")
    assert [reading.missing for reading in board.read() if reading.sensor_id.endswith("aux.temperature_celsius")] == [
        Missing.IMPLAUSIBLE
    ]
    assert not processors(root).probe().ok


def test_a_sensor_that_its_driver_calls_broken_is_missing(tmp_path: Path) -> None:
    root = tree(tmp_path, chip(0, "lm90", temp1="local 31000", temp2="remote 34000", temp2_fault=0))
    board = Checked(hwmon.make(sysfs=f"{root}", proc=f"{root}"))
    assert sorted(filter(None, values(board).values())) == [31, 34]
    (root / f"{HWMON}0/temp2_fault").write_text("1\n")
    told = {reading.missing: reading.detail for reading in board.read() if reading.value is None}
    assert list(told) == [Missing.DEVICE_ERROR]
    assert "temp2_fault" in told[Missing.DEVICE_ERROR]


def test_another_device_that_gets_the_number_of_one_that_went_is_not_read_for_it(tmp_path: Path) -> None:
    root = tree(tmp_path, {**chip(4, "nvme", "nvme0", temp1="Composite 41000"), **zone(0, "board", 35_000)})
    drives = Checked(hwmon.make(sysfs=f"{root}", proc=f"{root}"))
    boards = Checked(thermal_zones.make(sysfs=f"{root}", proc=f"{root}"))
    assert values(drives) == {"nvme0": 41}
    assert values(boards) == {"board0": 35}
    for gone in (f"{HWMON}4", f"{ZONES}0"):
        shutil.rmtree(root / gone)
    tree(root, {**chip(4, "nvme", "nvme7", temp1="Composite 66000"), **zone(0, "other", 70_000)})
    assert read(drives)["nvme0"].missing is Missing.ABSENT
    assert read(boards)["board0"].missing is Missing.ABSENT
    # It comes back: to its own place, and is read again.
    shutil.rmtree(root / f"{HWMON}4")
    tree(root, chip(4, "nvme", "nvme0", temp1="Composite 43000"))
    assert values(drives) == {"nvme0": 43}


def test_zones_of_one_type_are_two_processors_in_a_recording_too(tmp_path: Path) -> None:
    files = {**zone(0, "x86_pkg_temp", 50_000), **zone(1, "x86_pkg_temp", 61_000), **sockets(2)}
    source = processors(tree(tmp_path, files))
    assert values(source) == {"cpu0.package": 50, "cpu1.package": 61}
    # A recording tells devices by their identities.
    assert [sensor.id for sensor in Naming(source.sensors()).assign(source.sensors())] == [
        "cpu0.package.temperature_celsius",
        "cpu1.package.temperature_celsius",
    ]


DRIVERS = (
    "coretemp", "k10temp", "zenpower", "zhaoxin_cputemp", "cpu_hwmon", "cpu-hwmon", "scmi_sensors", "apm_xgene", "nvme",
    "amdgpu", "acpitz", "nct6775",
)  # fmt: skip
PLACES = ("", "0000:00:18.3", "0000:00:1a.3", "0000:00:19.3", "coretemp.1", "nvme0")
LABELS = (
    "", "Package id 0", "Package id 1", "Core 0", "Tctl", "Tdie", "Tccd1", "CPU_TEMP_0", "CPU_TEMP_1",
    "SoC Temperature", "junction", "Composite", "What is this",
)  # fmt: skip
TYPES = ("x86_pkg_temp", "cpu-thermal", "cpu-thermal0", "cluster0-thermal", "soc-thermal", "acpitz", "")
RAW = st.sampled_from((51_000, 52_000, 63_500, 0, -1_000, 45, 127_000, 255, -274_000, "none", ""))


@cheaply(examples=25)
@given(
    found=st.lists(
        st.tuples(
            st.sampled_from(DRIVERS),
            st.sampled_from(PLACES),
            st.lists(st.tuples(st.sampled_from(LABELS), RAW), max_size=4),
        ),
        max_size=5,
    ),
    types=st.lists(st.tuples(st.sampled_from(TYPES), RAW), max_size=4),
    packages=st.integers(0, 3),
)
def test_whatever_there_is_no_two_sensors_are_one(
    found: list[tuple[str, str, list[tuple[str, object]]]], types: list[tuple[str, object]], packages: int
) -> None:
    files = sockets(packages)
    for number, (driver, place, inputs) in enumerate(found):
        named = {f"temp{order}": f"{label} {raw}" for order, (label, raw) in enumerate(inputs, start=1)}
        files |= chip(number, driver, place, **named)
    for number, (kind, raw) in enumerate(types):
        files |= zone(number, kind, raw)
    with tempfile.TemporaryDirectory() as folder:
        root = tree(Path(folder), files)
        for make in (cpu_temperature.make, hwmon.make, thermal_zones.make):
            source = Checked(make(sysfs=f"{root}", proc=f"{root / 'proc'}"))
            assert source.probe().ok or source.probe().reason
            sensors = source.sensors()
            assert [reading.sensor_id for reading in source.read()] == [sensor.id for sensor in sensors]
            assert [sensor.id for sensor in Naming(sensors).assign(sensors)] == [sensor.id for sensor in sensors]
            # These count their processors themselves.
            by_label = {driver for driver, _, _ in found} & {"coretemp", "cpu-hwmon"}
            known = set() if by_label else {f"cpu{cpu}" for cpu in range(packages)}
            assert not known or {one.device for one in sensors if kind_of(one.device) is Kind.CPU} <= known
            source.close()
