from __future__ import annotations

import pytest

from pytest_thermal.bench import Monitor
from pytest_thermal.experiment import ThresholdWatch, thresholds_of
from pytest_thermal.model import Sensor
from pytest_thermal.model.readings import Unit

GPU = "gpu0.temperature_celsius"


def sensor(name: str, unit: Unit = Unit.CELSIUS) -> Sensor:
    return Sensor(id=name, unit=unit, device=name.split(".", maxsplit=1)[0], identity=name, source="invented")


def watch(critical: float | None = None) -> ThresholdWatch:
    monitor = Monitor(alert_threshold_gpu_celsius=83.0, critical_threshold_gpu_celsius=critical)
    return ThresholdWatch(thresholds_of([sensor(GPU)], monitor, {"monitor.alert_threshold_gpu_celsius": "a file"}))


@pytest.mark.parametrize(
    "name, celsius",
    [
        ("cpu0.package.temperature_celsius", 85.0),
        ("gpu0.temperature_celsius", 83.0),
        ("npu3.temperature_celsius", 83.0),
        ("mlu1.memory.temperature_celsius", 83.0),
        ("dcu0.temperature_celsius", 83.0),
    ],
)
def test_each_kind_has_its_threshold(name: str, celsius: float) -> None:
    assert thresholds_of([sensor(name)], Monitor())[name].alert_celsius == celsius


@pytest.mark.parametrize(
    "name", ["coolant_supply.temperature_celsius", "ambient.temperature_celsius", "nvme0.temperature_celsius"]
)
def test_the_loop_and_the_room_have_none(name: str) -> None:
    assert thresholds_of([sensor(name)], Monitor()) == {}


def test_power_has_none() -> None:
    assert thresholds_of([sensor("gpu0.power_watts", Unit.WATTS)], Monitor()) == {}


def test_a_crossing_is_told_once_with_its_origin() -> None:
    watched = watch()
    assert watched.look({GPU: 83.0}) == []
    (crossing,) = watched.look({GPU: 84.0})
    assert crossing.text == f"{GPU} is at 84.0 °C, above the threshold of 83 °C (a file)"
    assert watched.look({GPU: 86.0}) == []


def test_a_value_that_wavers_around_the_threshold_is_one_crossing() -> None:
    watched = watch()
    told = [watched.look({GPU: value}) for value in (84.0, 82.5, 84.0, 82.9, 84.0)]
    assert [len(crossings) for crossings in told] == [1, 0, 0, 0, 0]


def test_it_is_told_again_after_it_had_cooled() -> None:
    watched = watch()
    told = [watched.look({GPU: value}) for value in (84.0, 80.0, 84.0)]
    assert [len(crossings) for crossings in told] == [1, 0, 1]


def test_a_missing_reading_crosses_nothing() -> None:
    assert watch(critical=90.0).look({GPU: None}) == []


def test_a_single_reading_above_critical_may_be_a_spike() -> None:
    watched = watch(critical=90.0)
    told = [crossing.critical for value in (70.0, 120.0, 70.0) for crossing in watched.look({GPU: value})]
    assert told == [False]


def test_two_in_a_row_are_critical_once() -> None:
    watched = watch(critical=90.0)
    told = [crossing for value in (91.0, 92.0, 93.0) for crossing in watched.look({GPU: value})]
    assert [crossing.critical for crossing in told] == [False, True]
    assert "critical threshold of 90 °C" in told[1].text


def test_no_critical_threshold_is_ever_invented() -> None:
    watched = watch()
    told = [crossing.critical for _ in range(5) for crossing in watched.look({GPU: 150.0})]
    assert told == [False]
