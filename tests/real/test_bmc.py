"""The real ``ipmitool`` against a simulated BMC: what no recorded output shows is whether the two agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.bench import Bench, load_bench
from pytest_thermal.model import Missing, Reading
from pytest_thermal.recording import SourceOrder, create_run, read_run, start_recorder
from pytest_thermal.sensors import SourceSpec, discover
from pytest_thermal.sensors.specs import bench_specs
from tests.real.parts.bmc import CIPHER_SUITE, PASSWORD, USER, Bmc
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.real

_CONFIG = """\
[api]
base_url = "http://127.0.0.1:1/v1"
[monitor]
sensors = {{pump0 = "ipmi:05h", pump2 = "ipmi:Pump 2"}}
ipmi_host = "{host}"
ipmi_user = "{user}"
ipmi_cipher_suite = {suite}
"""


@pytest.fixture
def bench(bmc: Bmc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("IPMI_PASSWORD", PASSWORD)
    (tmp_path / "config.toml").write_text(_CONFIG.format(host=bmc.host, user=USER, suite=CIPHER_SUITE))
    return load_bench(tmp_path, environ={"IPMI_PASSWORD": PASSWORD})


def source(bench: Bench) -> SourceSpec:
    (spec,) = [one for one in bench_specs(bench.monitor) if one.name == "ipmi"]
    return spec


def readings(bench: Bench) -> dict[str, Reading]:
    (found,) = discover([source(bench)]).found
    assert found.availability.ok, found.availability.reason
    return dict(found.readings)


def test_what_the_bmc_measures_is_read_by_its_names_and_the_benchs(bench: Bench) -> None:
    found = readings(bench)
    here = {name: reading.value for name, reading in found.items() if reading.value is not None}
    assert here.pop("coolant_supply.temperature_celsius") == 31
    assert here.pop("pump0.speed_rpm") == 2940
    assert here.pop("pump1.speed_rpm") == 3200
    assert here.pop("psu1.power_watts") == 640
    # The other of the name, and the one whose name came back as bytes of no encoding.
    assert here.pop("cpu_opt_06h_7_1.speed_rpm") == 2000
    assert "fan1.speed_rpm" not in here
    assert list(here.values()) == [5050]
    silent = found["pump2.speed_rpm"]
    assert (silent.missing, silent.detail) == (Missing.NOT_OFFERED, "Disabled")


def test_a_recording_follows_the_pump_and_holds_no_password(bmc: Bmc, bench: Bench, tmp_path: Path) -> None:
    run = create_run(tmp_path / "runs", facts={"bench": {"name": "test"}})
    orders = [SourceOrder(source=source(bench), period_seconds=0.5)]
    with start_recorder(
        run, sources=orders, period_seconds=0.5, secrets=bench.secrets(), startup_seconds=PATIENCE_SECONDS
    ):
        samples = run / "samples" / "ipmi.csv"
        for rpm in (3200, 1600, 0):
            bmc.set(2, rpm)
            wait_for(samples, rpm, after=len(pump(samples)))
    bmc.set(2, 3200)
    series = read_run(run).series["pump1.speed_rpm"]
    assert {3200.0, 1600.0, 0.0} <= set(series.values.tolist())
    assert not [path for path in run.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]


def test_a_wrong_password_is_told_as_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPMI_PASSWORD", "another-password")
    monitor = bench.monitor.model_copy(update={"sensors": {}})
    (found,) = discover([one for one in bench_specs(monitor) if one.name == "ipmi"]).found
    assert not found.availability.ok
    assert "password" in found.availability.reason
    assert "another-password" not in found.availability.reason


def pump(samples: Path) -> list[float]:
    lines = samples.read_text("utf-8").splitlines() if samples.exists() else []
    if not lines:
        return []
    place = lines[0].split(",").index("pump1.speed_rpm")
    return [
        float(cells[place]) for cells in (line.split(",") for line in lines[1:]) if len(cells) > place and cells[place]
    ]


def wait_for(samples: Path, rpm: float, *, after: int) -> None:
    until(lambda: rpm in pump(samples)[after:])
