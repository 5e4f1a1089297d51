"""NVIDIA's library: each GPU by its UUID, each error its own."""

from __future__ import annotations

import sys

import pytest

from pytest_thermal.model import Missing, Reading
from pytest_thermal.sensors import SensorSet, SourceSpec, discover
from pytest_thermal.sensors.nvml import Nvml, make
from pytest_thermal.sensors.plausibility import Checked
from tests.sensors.fake_nvml import LOST, NO_PERMISSION, NOT_SUPPORTED, UNKNOWN, FakeNvml, Gpu


@pytest.fixture
def library() -> FakeNvml:
    return FakeNvml(Gpu("GPU-bbb", 50), Gpu("GPU-aaa", 60), Gpu("GPU-ccc", 70))


def by_id(source: Nvml) -> dict[str, Reading]:
    return {reading.sensor_id: reading for reading in source.read()}


def temperatures(source: Nvml) -> list[float | Missing | None]:
    readings = by_id(source)
    found = [readings[f"gpu{index}.temperature_celsius"] for index in range(3)]
    return [reading.missing or reading.value for reading in found]


def test_every_figure_of_a_gpu(library: FakeNvml) -> None:
    source = Nvml(library=library)
    assert source.probe().ok
    values = {name: reading.value for name, reading in by_id(source).items() if name.startswith("gpu1.")}
    assert values == {
        "gpu1.temperature_celsius": 60,
        "gpu1.memory.temperature_celsius": 66,
        "gpu1.power_watts": 305.25,
        "gpu1.instant.power_watts": 311,
        "gpu1.utilization_percent": 87,
        "gpu1.memory.used_bytes": 3 << 30,
        "gpu1.clock_megahertz": 1755,
        "gpu1.memory.clock_megahertz": 2619,
        "gpu1.throttle_reasons_bits": 0x24,
        "gpu1.throttle.power_cap_milliseconds": 2.5,
        "gpu1.throttle.thermal_milliseconds": 2.5,
    }
    limits = {sensor.id: dict(sensor.limits) for sensor in source.sensors()}
    assert limits["gpu1.temperature_celsius"] == {"shutdown": 92.0}
    assert limits["gpu1.power_watts"] == {"cap": 700.0}
    assert limits["gpu1.memory.used_bytes"] == {"max": 80 << 30}
    assert {one.sensor.id for one in source.absent() if one.sensor.device == "gpu1"} == {
        "gpu1.fan.speed_percent", "gpu1.temperature_kelvin_margin",
    }  # fmt: skip
    assert [sensor.identity for sensor in source.sensors()] == sorted(sensor.identity for sensor in source.sensors())
    source.close()
    assert library.open == 0


def test_a_lost_gpu_leaves_the_others_alone(library: FakeNvml) -> None:
    source = Nvml(library=library)
    assert source.probe().ok
    library.gpus[1].error = LOST
    assert temperatures(source) == [50, Missing.DEVICE_ERROR, 70]
    assert by_id(source)["gpu1.power_watts"].detail == "GPU is lost"
    library.gpus[1].error = None
    assert temperatures(source) == [50, 60, 70]
    source.close()


def test_a_gpu_lost_from_the_start_is_still_shown(library: FakeNvml) -> None:
    library.gpus[0].error = LOST
    source = Nvml(library=library)
    assert source.probe().ok
    assert temperatures(source) == [Missing.DEVICE_ERROR, 60, 70]
    source.close()


def test_one_figure_that_fails_takes_no_other_with_it(library: FakeNvml) -> None:
    source = Nvml(library=library)
    assert source.probe().ok
    library.gpus[0].errors["PowerUsage"] = UNKNOWN
    library.gpus[2].errors["UtilizationRates"] = NOT_SUPPORTED
    readings = by_id(source)
    assert readings["gpu0.power_watts"].missing is Missing.DEVICE_ERROR
    assert readings["gpu0.utilization_percent"].value == 87
    assert readings["gpu2.utilization_percent"].missing is Missing.NOT_OFFERED
    source.close()


def test_a_figure_that_this_user_may_not_read_is_said_once(library: FakeNvml) -> None:
    for gpu in library.gpus:
        gpu.errors["PowerUsage"] = NO_PERMISSION
    source = Nvml(library=library)
    assert source.probe().ok
    absent = {one.sensor.id: one.reading for one in source.absent()}
    assert absent["gpu0.power_watts"].missing is Missing.UNREADABLE
    source.close()


def test_a_memory_of_0_degrees_is_no_sensor(library: FakeNvml) -> None:
    library.gpus[1].memory_celsius = 0
    source = Nvml(library=library)
    assert "gpu1.memory.temperature_celsius" not in {sensor.id for sensor in source.sensors()}
    assert "gpu0.memory.temperature_celsius" in {sensor.id for sensor in source.sensors()}
    source.close()


def test_a_session_that_broke_is_begun_again_once_and_by_uuid(library: FakeNvml) -> None:
    source = Nvml(library=library)
    assert source.probe().ok
    library.session = UNKNOWN
    library.gpus.reverse()
    assert temperatures(source) == [50, 60, 70]
    assert library.begun == 2
    source.close()


def test_a_session_that_stays_broken_is_given_up(library: FakeNvml) -> None:
    source = Nvml(library=library)
    assert source.probe().ok
    library.session = library.no_session = UNKNOWN
    for _ in range(3):
        assert temperatures(source) == [Missing.DEVICE_ERROR] * 3
    assert library.begun == 1
    source.close()


def test_only_the_wanted(library: FakeNvml) -> None:
    source = Nvml(library=library, only=frozenset({"2"}))
    assert {sensor.device for sensor in source.sensors()} == {"gpu2"}
    source.close()
    none = Nvml(library=library, only=frozenset({"7"}))
    assert "7" in none.probe().reason
    none.close()


def test_temperatures_below_0_come_as_huge_numbers_and_are_refused(library: FakeNvml) -> None:
    source = Checked(Nvml(library=library))
    assert source.probe().ok
    library.gpus[0].figures["Temperature"] = 4294967256
    readings = {reading.sensor_id: reading for reading in source.read()}
    assert readings["gpu0.temperature_celsius"].missing is Missing.IMPLAUSIBLE
    source.close()


def test_no_driver(library: FakeNvml) -> None:
    library.no_session = UNKNOWN
    assert Nvml(library=library).probe().reason == "NVML: Unknown Error"


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    availability = make().probe()
    assert not availability.ok
    assert "nvidia-ml-py" in availability.reason


def test_the_real_library_has_every_function_we_call(library: FakeNvml) -> None:
    real = pytest.importorskip("pynvml")
    called: set[str] = set()

    class Recording(FakeNvml):
        def __getattribute__(self, name: str) -> object:
            if name.startswith("nvml"):
                called.add(name)
            return super().__getattribute__(name)

    source = Nvml(library=Recording(*library.gpus))
    source.read()
    source.close()
    assert len(called) > 12
    assert [name for name in sorted(called) if not hasattr(real, name)] == []


def test_without_it_the_command_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    specs = [
        SourceSpec(name="nvml", factory="pytest_thermal.sensors.nvml:make"),
        SourceSpec(name="instead", factory="tests.sensors.factories:steady", fallback_for="nvml"),
    ]
    assert [spec.name for spec in discover(specs).specs] == ["instead"]


def test_with_it_the_command_is_not_even_asked(monkeypatch: pytest.MonkeyPatch, library: FakeNvml) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library)
    specs = [
        SourceSpec(name="nvml", factory="pytest_thermal.sensors.nvml:make"),
        SourceSpec(name="instead", factory="tests.sensors.factories:raises", fallback_for="nvml"),
    ]
    found = discover(specs)
    assert [one.spec.name for one in found.found] == ["nvml"]
    with SensorSet(found.specs) as sensors:
        assert sensors.read()["gpu2.temperature_celsius"].value == 70
