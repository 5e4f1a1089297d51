from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_thermal.demo.simulated import SimulatedMachine
from pytest_thermal.demo.state import ACCELERATOR_MODULE, FOLDER_VARIABLE, Burning, Served
from pytest_thermal.demo.thermal_source import DemoSource, load_of, make, spec
from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors import Source, SourceSpec, open_source

IDS = [
    "cpu0.package.temperature_celsius",
    "cpu0.utilization_percent",
    "cpu0.power_watts",
    "cpu0.clock_megahertz",
    *(
        f"gpu{card}.{quantity}"
        for card in (0, 1)
        for quantity in (
            "temperature_celsius",
            "memory.temperature_celsius",
            "power_watts",
            "utilization_percent",
            "clock_megahertz",
            "throttle.power_cap_milliseconds",
            "throttle.thermal_milliseconds",
        )
    ),
    "pump0.speed_rpm",
    "fan0.speed_rpm",
    "coolant.flow_liters_per_minute",
    "coolant_supply.temperature_celsius",
    "coolant_return.temperature_celsius",
    "ambient.temperature_celsius",
    "leak0.detector_state",
]


def test_it_is_a_source_that_another_process_can_make(tmp_path: Path) -> None:
    described = spec(tmp_path, fault="air", seed=7, cores=3)
    again = SourceSpec(**json.loads(json.dumps({"options": dict(described.options)})) | {
        "name": described.name, "factory": described.factory
    })  # fmt: skip
    source = open_source(again)
    assert isinstance(source, Source)
    assert source.name == "demo"
    assert source.probe().ok
    assert [sensor.id for sensor in source.sensors()] == IDS
    readings = source.read()
    assert [reading.sensor_id for reading in readings] == IDS
    assert [reading.missing for reading in readings] == [None] * len(IDS)
    source.close()


def test_every_sensor_says_that_it_is_simulated(tmp_path: Path) -> None:
    for sensor in make(folder=str(tmp_path)).sensors():
        assert sensor.source == "demo"
        assert sensor.identity == f"simulated-{sensor.device}"
        assert "simulated" in sensor.label
        assert sensor.id.endswith(f"_{sensor.unit}")
        assert sensor.id.startswith(f"{sensor.device}.")


def test_cards_report_their_own_limits(tmp_path: Path) -> None:
    limits = {sensor.id: sensor.limits for sensor in make(folder=str(tmp_path)).sensors()}
    for card in ("gpu0", "gpu1"):
        assert limits[f"{card}.temperature_celsius"] == {"slowdown": 87.0, "shutdown": 92.0}
        assert limits[f"{card}.throttle.thermal_milliseconds"] == {}


def test_a_folder_that_is_gone_makes_it_unavailable(tmp_path: Path) -> None:
    source = make(folder=str(tmp_path / "gone"))
    assert not source.probe().ok
    assert "gone" in source.probe().reason


@pytest.mark.parametrize("wrong", [{"fault": "no such"}, {"time_scale": 0.0}, {"cores": 0}, {"capacity": -1}])
def test_options_that_cannot_be_are_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"is not above zero|no thermal demo fault"):
        make(folder=str(tmp_path), **wrong)  # type: ignore[arg-type]


def test_an_unknown_fault_is_refused_where_it_is_described(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no thermal demo fault"):
        spec(tmp_path, fault="pump-stop")


@pytest.mark.parametrize(
    "burning, served, expected",
    [
        (Burning(), Served(), (0.0, 0.0, 0.0)),
        (Burning(burners=1), Served(), (0.5, 0.0, 0.0)),
        (Burning(burners=5), Served(), (1.0, 0.0, 0.0)),
        (Burning(cards=frozenset({1})), Served(), (0.0, 0.0, 1.0)),
        (Burning(cards=frozenset({9})), Served(), (0.0, 0.0, 0.0)),
        (Burning(every_card=True), Served(), (0.0, 1.0, 1.0)),
        (Burning(), Served(in_flight=2.0), (0.0, 0.5, 0.5)),
        (Burning(), Served(in_flight=40.0), (0.0, 1.0, 1.0)),
        (Burning(cards=frozenset({0})), Served(in_flight=1.0), (0.0, 1.0, 0.25)),
    ],
)
def test_what_runs_is_shared_out_over_the_devices(
    burning: Burning, served: Served, expected: tuple[float, float, float]
) -> None:
    load = load_of(burning, served, cores=2, capacity=4)
    assert (load["cpu0"], load["gpu0"], load["gpu1"]) == expected


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A source at a clock that only the test moves."""

    def __init__(self, folder: Path, fault: str | None = None) -> None:
        self.clock = Clock()
        self.source = DemoSource(
            folder=folder,
            machine=SimulatedMachine(fault=fault),
            time_scale=20.0,
            cores=2,
            capacity=4,
            clock=self.clock,
        )

    def read(self, wait_seconds: float = 0.25) -> dict[str, float | None]:
        self.clock.now += wait_seconds
        return {reading.sensor_id: reading.value for reading in self.source.read()}

    def celsius(self, sensor: str, wait_seconds: float = 0.25) -> float:
        value = self.read(wait_seconds)[f"{sensor}.temperature_celsius"]
        assert value is not None
        return value


@pytest.fixture
def load(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Burns card 0 of the machine in tmp_path."""
    command = [sys.executable, "-P", "-m", ACCELERATOR_MODULE, "--card", "0"]
    environ = {**os.environ, FOLDER_VARIABLE: str(tmp_path)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()  # it runs for certain
        try:
            yield process
        finally:
            process.kill()


def test_a_card_is_warm_while_its_load_lives(tmp_path: Path, load: subprocess.Popen[bytes]) -> None:
    watched = Watched(tmp_path)
    cold = watched.read()
    for _ in range(60):
        hot = watched.read()
    assert hot["gpu0.temperature_celsius"] == pytest.approx((cold["gpu0.temperature_celsius"] or 0) + 32.0, abs=2.0)
    assert hot["gpu1.temperature_celsius"] == pytest.approx(cold["gpu1.temperature_celsius"], abs=4.0)
    assert (hot["gpu0.utilization_percent"] or 0.0) >= 95.0
    assert (hot["cpu0.utilization_percent"] or 0.0) < 5.0
    load.kill()
    load.wait()
    first = watched.read()
    assert (first["gpu0.utilization_percent"] or 0.0) < 5.0
    assert (first["gpu0.temperature_celsius"] or 0.0) < (hot["gpu0.temperature_celsius"] or 0.0) - 5.0


def test_bench_time_passes_faster_than_ours(tmp_path: Path, load: subprocess.Popen[bytes]) -> None:
    by_ticks, at_once = Watched(tmp_path), Watched(tmp_path)
    by_ticks.read(), at_once.read()
    for _ in range(40):
        warm = by_ticks.celsius("gpu0")
    assert at_once.celsius("gpu0", 10.0) == pytest.approx(warm, abs=1.0)
    assert load.poll() is None


def test_it_begins_cold_however_late_it_is_read(tmp_path: Path, load: subprocess.Popen[bytes]) -> None:
    assert Watched(tmp_path).celsius("gpu0", 900.0) == pytest.approx(33.5, abs=1.0)
    assert load.poll() is None


def test_a_long_pause_is_caught_up_with_in_no_time(tmp_path: Path, load: subprocess.Popen[bytes]) -> None:
    watched = Watched(tmp_path)
    watched.read()
    assert watched.celsius("gpu0", 1e6) == pytest.approx(66.5, abs=2.0)
    assert load.poll() is None


def test_a_fault_waits_for_its_load(tmp_path: Path, load: subprocess.Popen[bytes]) -> None:
    watched = Watched(tmp_path, fault="pump_stop")
    speeds = [watched.read()["pump0.speed_rpm"] or 0.0 for _ in range(90)]
    first = next(index for index, speed in enumerate(speeds) if speed < 1000.0)
    assert 65 <= first <= 75  # 350 bench seconds, of which 5 pass in a reading
    assert speeds[-1] == 0.0
    assert load.poll() is None


def test_a_dropout_says_why(tmp_path: Path, load: subprocess.Popen[bytes]) -> None:
    watched = Watched(tmp_path, fault="sensor_dropout")
    missing = []
    for _ in range(30):
        watched.clock.now += 0.25
        missing += [reading for reading in watched.source.read() if reading.missing]
    assert {reading.sensor_id for reading in missing} == {"gpu0.temperature_celsius"}
    assert {reading.missing for reading in missing} == {Missing.UNREADABLE}
    assert all("simulated" in reading.detail for reading in missing)
    assert load.poll() is None


def test_units_are_those_of_the_ids(tmp_path: Path) -> None:
    units = {sensor.id: sensor.unit for sensor in make(folder=str(tmp_path)).sensors()}
    assert units["coolant.flow_liters_per_minute"] is Unit.LITERS_PER_MINUTE
    assert units["gpu0.throttle.thermal_milliseconds"] is Unit.MILLISECONDS
