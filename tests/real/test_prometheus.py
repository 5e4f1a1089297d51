"""The chain as it stands in a rack: BMC, FreeIPMI, ipmi_exporter, Prometheus, and our source at its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_thermal.bench import Monitor
from pytest_thermal.model import Missing, Reading
from pytest_thermal.recording import SourceOrder, create_run, read_run, start_recorder
from pytest_thermal.sensors import Source, SourceSpec, SpecError, discover, open_source
from pytest_thermal.sensors.specs import bench_specs
from tests.real.parts.prometheus import Prometheus
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.real

CARDS = """
DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-a1"}} {zero}
DCGM_FI_DEV_GPU_TEMP{{gpu="1",UUID="GPU-b2"}} 53
cdu_flow{{loop="secondary"}} 38.5
old_celsius 44 {old}
pushed_celsius{{job="push",instance="x"}} 45
push_time_seconds{{job="push",instance="x"}} 1700000000
"""
NAMED = {
    "coolant_return": 'prometheus:ipmi_temperature_celsius{name="Coolant In"}',
    "pump0": 'prometheus:max(ipmi_fan_speed_rpm{name="Pump 1"})',
    "flow.flow_liters_per_minute": "prometheus:cdu_flow",
    "old": "prometheus:old_celsius",
    "pushed": "prometheus:pushed_celsius",
}


def page(zero: str = "51") -> str:
    return CARDS.format(zero=zero, old=int((time.time() - 200) * 1000))


def spec(chain: Prometheus, **settings: object) -> SourceSpec:
    monitor = Monitor.model_validate({"prometheus_url": chain.url, **settings})
    (found,) = [one for one in bench_specs(monitor) if one.name == "prometheus"]
    return found


def read(source: Source) -> dict[str, Reading]:
    return {reading.sensor_id: reading for reading in source.read()}


@pytest.fixture(scope="module")
def source(prometheus: Prometheus) -> Iterator[Source]:
    prometheus.written.page = page()
    until(lambda: prometheus.asked("old_celsius") and prometheus.asked("push_time_seconds"))
    opened = open_source(spec(prometheus, sensors=NAMED))
    opened.sensors()
    yield opened
    opened.close()


def test_all_exporters_and_the_benchs_expressions_are_read(source: Source) -> None:
    expected = {
        "coolant_return.temperature_celsius": 31,
        "pump0.speed_rpm": 3200,
        "flow.flow_liters_per_minute": 38.5,
        "pump1.speed_rpm": 3200,
        "cpu_opt_4.speed_rpm": 2940,
        "cpu_opt_5.speed_rpm": 2000,
        "psu1.power_watts": 640,
        "gpu0.temperature_celsius": 51,
        "gpu1.temperature_celsius": 53,
        "cpu0.package.temperature_celsius": 62,
        "nct6798.w_pump.speed_rpm": 3450,
    }

    def found() -> dict[str, float]:
        return {name: reading.value for name, reading in read(source).items() if reading.value is not None}

    until(lambda: found() == expected, lambda: f"{found()}")  # an exporter may miss its second
    here = read(source)
    assert here["old.temperature_celsius"].missing is Missing.STALE
    assert here["pushed.temperature_celsius"].missing is Missing.STALE
    assert "push gateway" in here["pushed.temperature_celsius"].detail


def test_a_slip_in_an_expression_is_told_in_prometheus_words(prometheus: Prometheus) -> None:
    for expression, words in (
        ('cdu_flow{loop="a"', "parse error"),
        ("ipmi_fan_speed_rpm", "3 series"),
        ("ipmi_fan_rpm", "near to it: ipmi_fan_speed_rpm"),
        ('ipmi_fan_speed_rpm{name="Pump 2"}', "selects nothing"),
    ):
        with pytest.raises(SpecError, match=words):
            discover([spec(prometheus, sensors={"pump0": f"prometheus:{expression}"})])


def test_a_recording_follows_the_pump_through_the_chain(prometheus: Prometheus, source: Source, tmp_path: Path) -> None:
    run = create_run(tmp_path / "runs", facts={"bench": {"name": "test"}})
    orders = [SourceOrder(source=spec(prometheus), period_seconds=0.5)]
    with start_recorder(run, sources=orders, period_seconds=0.5, startup_seconds=PATIENCE_SECONDS):
        samples = run / "samples" / "prometheus.csv"
        until(lambda: samples.exists() and samples.read_text().count("\n") > 1)
        prometheus.bmc.set(2, 0)
        prometheus.written.page = page(zero="NaN")
        until(lambda: read(source)["pump1.speed_rpm"].value == 0)
        until(lambda: 0.0 in read_run(run).series["pump1.speed_rpm"].values)
    prometheus.bmc.set(2, 3200)
    series = read_run(run).series
    assert {3200.0, 0.0} <= set(series["pump1.speed_rpm"].values.tolist())

    def not_offered() -> bool:
        reading = read(source)["gpu0.temperature_celsius"]
        return (reading.missing, reading.detail) == (Missing.NOT_OFFERED, "NaN")

    until(not_offered, lambda: f"{read(source)}")
    until(lambda: read(source)["gpu1.temperature_celsius"].value == 53)


def test_an_exporter_that_is_killed_is_named_and_the_others_go_on(prometheus: Prometheus, source: Source) -> None:
    prometheus.end_ipmi_exporter()
    prometheus.written.page = page().replace("cdu_flow", "another")
    ipmi = ("pump1.speed_rpm", "pump0.speed_rpm", "coolant_return.temperature_celsius")

    def named() -> bool:
        here = read(source)
        return (
            all(here[name].missing is Missing.ABSENT and "up is 0, job ipmi" in here[name].detail for name in ipmi)
            and "no such series" in here["flow.flow_liters_per_minute"].detail
            and here["gpu1.temperature_celsius"].value == 53
        )

    until(named, lambda: f"{read(source)}")
