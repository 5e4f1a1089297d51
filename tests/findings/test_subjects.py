from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_thermal.findings import CHECKS, subjects
from pytest_thermal.model import Sensor, Unit
from tests.findings.recordings import unit_of

IDS = (
    "gpu10.temperature_celsius",
    "gpu9.temperature_celsius",
    "gpu9.memory.temperature_celsius",
    "gpu9.power_watts",
    "gpu9.throttle_reasons_bits",
    "cpu0.core3.temperature_celsius",
    "cpu0.package.temperature_celsius",
    "cpu0.throttle.thermal_milliseconds",
    "nvme0.temperature_celsius",
    "coolant_supply.temperature_celsius",
    "ambient.temperature_celsius",
    "pump0.speed_rpm",
    "fan0.speed_rpm",
    "aio0.pump.speed_rpm",
    "platform.throttle.thermal_milliseconds",
)


def sensor(name: str) -> Sensor:
    device = name.partition(".")[0]
    return Sensor(id=name, unit=unit_of(name), device=device, identity=device, source="invented")


def of(check: str, *ids: str, inference: bool = False) -> tuple[str, ...]:
    return subjects(check, [sensor(name) for name in ids or IDS], inference=inference)


PARTS = (
    "cpu0.package.temperature_celsius",
    "gpu9.memory.temperature_celsius",
    "gpu9.temperature_celsius",
    "gpu10.temperature_celsius",
)


@pytest.mark.parametrize("check", ["baseline", "settled", "rebound", "drift"])
def test_temperatures_that_follow_the_load_but_not_each_core(check: str) -> None:
    assert of(check) == PARTS


def test_a_threshold_holds_for_each_core_too() -> None:
    assert of("threshold") == ("cpu0.core3.temperature_celsius", *PARTS)


def test_only_a_devices_own_temperature_has_an_expected_rise() -> None:
    assert of("rise") == (
        "cpu0.package.temperature_celsius", "gpu9.temperature_celsius", "gpu10.temperature_celsius"
    )  # fmt: skip


def test_a_devices_only_temperature_stands_for_it() -> None:
    assert of("rise", "gpu0.hotspot.temperature_celsius") == ("gpu0.hotspot.temperature_celsius",)
    assert of("rise", "gpu0.hotspot.temperature_celsius", "gpu0.memory.temperature_celsius") == ()


def test_cores_are_judged_where_there_is_no_package() -> None:
    cores = ("cpu0.core0.temperature_celsius", "cpu0.core1.temperature_celsius")
    assert of("settled", *cores) == cores


def test_devices_for_load_and_throttling() -> None:
    assert of("load") == ("cpu0", "gpu9", "gpu10")
    assert of("throttling") == ("cpu0", "gpu9")


def test_pumps_and_nothing_that_is_called_alike() -> None:
    assert of("pump") == ("aio0.pump.speed_rpm", "pump0.speed_rpm")
    assert of("pump", "pumpkin0.speed_rpm", "pump0.power_watts") == ()


def test_every_sensor_must_be_covered() -> None:
    assert set(of("coverage")) == set(IDS)


def test_throughput_only_where_there_are_requests() -> None:
    assert of("throughput", inference=True) == ("inference",)
    assert of("throughput") == ()


def test_the_order_does_not_depend_on_that_of_the_sensors() -> None:
    for check in CHECKS:
        assert of(check, *reversed(IDS)) == of(check)


def test_an_unknown_check_is_told_with_those_that_there_are() -> None:
    with pytest.raises(KeyError, match="no thermal check 'raise'; there are: coverage, baseline"):
        of("raise")


def test_a_sensor_without_a_number_is_no_temperature() -> None:
    margin = Sensor(
        id="gpu0.temperature_kelvin_margin", unit=Unit.KELVIN_MARGIN, device="gpu0", identity="x", source="invented"
    )
    assert subjects("threshold", [margin], inference=False) == ()


def test_asking_for_subjects_imports_no_numpy() -> None:
    code = (
        "import sys, pytest_thermal.findings as findings; findings.subjects('rise', [], inference=True);"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
