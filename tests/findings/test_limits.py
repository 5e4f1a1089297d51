from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_thermal.analysis import SETTLING_RATES
from pytest_thermal.bench import Monitor
from pytest_thermal.findings import limits_for
from tests.findings.recordings import CPU, GPU, MEMORY, healthy, limits, made_series, with_limits

ORIGINS = {
    "monitor.alert_threshold_gpu_celsius": "config.toml [thermal] alert_threshold_gpu",
    "monitor.alert_threshold_cpu_celsius": "default",
    "monitor.critical_threshold_gpu_celsius": "config.toml [thermal] critical_threshold_gpu",
}


def test_each_limit_has_a_value_a_unit_and_an_origin() -> None:
    found = limits_for(
        Monitor(alert_threshold_gpu_celsius=80.0, critical_threshold_gpu_celsius=88.0), origin=ORIGINS.__getitem__
    )
    assert found["threshold_gpu"].text == "80 °C (config.toml [thermal] alert_threshold_gpu)"
    assert found["threshold_cpu"].text == "85 °C (default)"
    assert found["critical_gpu"].value == 88.0
    assert "critical_cpu" not in found
    assert found["coverage_least"].text == "95 % (default)"
    assert found["gap_most"].text == "5 ticks (default)"
    assert len(found) == len(list(found))
    assert all(limit.name == name and limit.unit and limit.origin for name, limit in ((one.name, one) for one in found))


def test_an_override_says_where_it_came_from() -> None:
    found = limits(rise_gpu_most=(45.0, "conftest.py"))
    sensor = healthy().series[GPU].sensor
    assert found.rise(sensor) is not None
    assert [limit.text for limit in found.rise(sensor) or ()] == ["30 °C (default)", "45 °C (conftest.py)"]


@pytest.mark.parametrize("name", ["rise_gpu_moist", "coverage_least", "threshold_gpu", "settling"])
def test_what_cannot_be_set_is_refused_with_what_can(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: no limit that can be set here; these can: rise_cpu_least"):
        limits(**{name: (1.0, "here")})


def test_a_settling_rate_by_its_standard() -> None:
    found = limits_for(Monitor(), settling=("iec62368", "command line --settling"))
    assert found.rate is SETTLING_RATES["iec62368"]
    assert found["settling"].value == pytest.approx(0.1)
    assert found["settling"].origin == "command line --settling: IEC 62368-1: 3 K in 30 min"
    assert limits()["settling"].text == "0.2 K/min (default)"
    with pytest.raises(ValueError, match="--settling: no settling rate 'iec1'; there are: default, iec62368"):
        limits_for(Monitor(), settling=("iec1", "--settling"))


def test_an_unknown_limit_is_told_with_those_that_there_are() -> None:
    with pytest.raises(KeyError, match="no limit 'rise'; there are: threshold_cpu"):
        limits()["rise"]


@pytest.mark.parametrize(
    "own, text",
    [
        ({"slowdown": 80.0, "shutdown": 95.0}, "80 °C (device (slowdown))"),
        ({"slowdown": 87.0}, "83 °C (default)"),
        ({"max": 81.0}, "81 °C (device (max))"),
        ({"cap": 10.0}, "83 °C (default)"),
        ({}, "83 °C (default)"),
    ],
)
def test_the_lower_of_the_benchs_and_the_devices_own_threshold(own: dict[str, float], text: str) -> None:
    found = limits().threshold(with_limits(healthy(), GPU, **own).series[GPU].sensor)
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize(
    "own, text",
    [
        ({"max": 70.0, "critical": 100.0}, "85 °C (default)"),
        ({"max": 70.0, "critical": 84.0}, "84 °C (device (critical))"),
        ({"max": 70.0}, "70 °C (device (max))"),
    ],
)
def test_where_a_processors_fans_should_run_at_full_speed_is_no_limit_beside_its_own(
    own: dict[str, float], text: str
) -> None:
    found = limits().threshold(with_limits(healthy(), CPU, **own).series[CPU].sensor)
    assert found is not None
    assert found.text == text


def test_every_accelerator_has_the_limits_of_gpus_and_a_room_has_none() -> None:
    sensor = healthy().series[GPU].sensor
    for device in ("npu3", "mlu0", "dcu1"):
        found = limits().threshold(replace(sensor, id=f"{device}.temperature_celsius", device=device))
        assert found is not None
        assert found.name == "threshold_gpu"
    room = made_series("ambient.temperature_celsius", healthy().series[GPU].values).sensor
    assert limits().threshold(room) is None
    assert limits().rise(room) is None
    assert limits().threshold(healthy().series[MEMORY].sensor) == limits()["threshold_gpu"]
