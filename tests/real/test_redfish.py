"""The source against other people's Redfish: a CDU served by sushy-tools, and its emulated BMC."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.bench import Bench, load_bench
from pytest_thermal.model import Missing, Reading
from pytest_thermal.recording import SourceOrder, create_run, read_run, start_recorder
from pytest_thermal.sensors import SourceSpec, discover
from pytest_thermal.sensors.specs import bench_specs
from tests.real.parts.redfish import PASSWORD, USER, Cdu, RedfishBmc
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.real

PUMP, LEAK = "pump0.speed_rpm", "leak_tray.detector_state"


def bench(folder: Path, monitor: str) -> Bench:
    text = f'[api]\nbase_url = "http://127.0.0.1:1/v1"\n[monitor]\n{monitor}\n'
    (folder / "config.toml").write_text(text)
    return load_bench(folder, environ={"REDFISH_PASSWORD": PASSWORD})


def source(bench: Bench) -> SourceSpec:
    (spec,) = [one for one in bench_specs(bench.monitor) if one.name == "redfish"]
    return spec


@pytest.fixture
def with_cdu(cdu: Cdu, tmp_path: Path) -> Bench:
    sensors = 'sensors = {pump0 = "redfish:Pump 1", pump9 = "redfish:Pump 2"}'
    return bench(tmp_path, f'redfish_host = "{cdu.host}"\nredfish_ca = "{cdu.ca}"\n{sensors}')


def test_a_recording_follows_a_pump_and_a_leak_detector(cdu: Cdu, with_cdu: Bench, tmp_path: Path) -> None:
    run = create_run(tmp_path / "runs", facts={"bench": {"name": "test"}})
    orders = [SourceOrder(source=source(with_cdu), period_seconds=0.5)]
    cdu.turn(3600)
    with start_recorder(run, sources=orders, period_seconds=0.5, startup_seconds=PATIENCE_SECONDS):
        for rpm in (3600.0, 1800.0, 0.0):
            cdu.turn(rpm)
            wait_for(run, PUMP, rpm)
        cdu.set("LeakDetection/LeakDetectors/1", DetectorState="Critical")
        wait_for(run, LEAK, 2.0)
        cdu.set("Pumps/1", Status={"State": "UnavailableOffline", "Health": "Critical"})
        wait_for(run, PUMP, None)
    cdu.set("Pumps/1", Status={"State": "Enabled"})
    cdu.set("LeakDetection/LeakDetectors/1", DetectorState="OK")
    recording = read_run(run)
    assert {3600.0, 1800.0, 0.0} <= set(recording.series[PUMP].values.tolist())
    reasons = {stretch.reason for stretch in recording.missing if stretch.sensor_id == PUMP}
    assert Missing.DEVICE_ERROR in reasons
    assert set(recording.series["coolant_return.temperature_celsius"].readings()[1].tolist()) == {40.5}
    assert set(recording.series["gpu3.temperature_celsius"].readings()[1].tolist()) == {57.5}
    silent = [stretch for stretch in recording.missing if stretch.sensor_id == "pump9.speed_rpm"]
    assert {(one.reason, one.detail) for one in silent} == {(Missing.NOT_OFFERED, "Disabled")}


def test_a_certificate_that_nobody_vouches_for_is_refused_with_what_to_try(cdu: Cdu, tmp_path: Path) -> None:
    (found,) = discover([source(bench(tmp_path, f'redfish_host = "{cdu.host}"'))]).found
    assert not found.availability.ok
    assert 'redfish_ca = "bmc.pem"' in found.availability.reason


def test_a_bmc_that_knows_no_sessions_is_asked_all_the_same(
    redfish_bmc: RedfishBmc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDFISH_PASSWORD", PASSWORD)
    spec = source(bench(tmp_path, f'redfish_host = "http://{redfish_bmc.host}"\nredfish_user = "{USER}"'))
    (found,) = discover([spec]).found
    speeds = {name: one.value for name, one in found.readings.items() if name.endswith("_rpm")}
    assert found.availability.ok, found.availability.reason
    assert sorted(speed for speed in speeds.values() if speed) == [2050, 2100]
    monkeypatch.setenv("REDFISH_PASSWORD", "another-password")
    (found,) = discover([spec]).found
    assert "password in $REDFISH_PASSWORD is refused" in found.availability.reason
    assert "another-password" not in found.availability.reason


def wait_for(run: Path, sensor: str, value: float | None) -> None:
    until(lambda: newest(run, sensor) == (value,))


def newest(run: Path, sensor: str) -> tuple[float | None] | None:
    """The last whole row's reading; None while there is no row."""
    samples = run / "samples" / "redfish.csv"
    lines = samples.read_text("utf-8").splitlines(keepends=True) if samples.exists() else []
    rows = [line.strip().split(",") for line in lines if line.endswith("\n")]
    if len(rows) < 2:
        return None
    cell = rows[-1][rows[0].index(sensor)]
    return (Reading(sensor_id=sensor, value=float(cell)).value,) if cell else (None,)
