"""A run as Prometheus sees it: what is true now, nothing that is not, and gone when the run is."""

from __future__ import annotations

import json
import re
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pytest_thermal.model import Sensor, Unit
from pytest_thermal.recording import RunClock
from pytest_thermal.recording.words import sensor_to_json
from pytest_thermal.reporting.live_metrics import (
    METRICS,
    Address,
    Endpoint,
    FollowedRun,
    LiveMetricsError,
    Named,
    check_free,
    read_address,
)
from pytest_thermal.reporting.live_metrics.families import OF_UNIT
from tests.support.patience import PATIENCE_SECONDS, until

GPU, PUMP, USE = "gpu0.temperature_celsius", "pump0.speed_rpm", "gpu0.utilization_percent"
DEPLOY = Path(__file__).parents[2] / "deploy" / "grafana"


class Written:
    """A run directory as a recorder writes it."""

    def __init__(self, folder: Path, *, period_seconds: float = 1.0) -> None:
        self.path = folder / "20270115T080000Z_lab-7"
        (self.path / "samples").mkdir(parents=True)
        self.start = time.time() - 100.0
        self.facts = {
            "format": 1,
            "state": "recording",
            "bench": "lab-7",
            "simulated": True,
            "start_seconds": self.start,
            "clock": {},
            "plan": {"seconds": {"baseline": 300.0, "steady": 3600.0}},
            "recorder": {"period_seconds": period_seconds},
            "sources": {"bmc": {"period_seconds": 10 * period_seconds}},
            "sensors": [
                sensor_to_json(Sensor(id=name, unit=unit, device=name.partition(".")[0], identity="x", source=source))
                for name, unit, source in (
                    (GPU, Unit.CELSIUS, "nvml"),
                    (USE, Unit.PERCENT, "nvml"),
                    (PUMP, Unit.RPM, "bmc"),
                )
            ],
        }
        self.note()
        self.add("samples/nvml.csv", f"time,{GPU},{USE},recorder.nvml.lateness_milliseconds")
        self.add("samples/bmc.csv", f"time,{PUMP}")

    def note(self, **facts: object) -> None:
        self.facts |= facts
        (self.path / "run.json").write_text(json.dumps(self.facts))

    def add(self, file: str, line: str) -> None:
        with (self.path / file).open("a") as opened:
            opened.write(f"{line}\n")

    def event(self, kind: str, **detail: object) -> None:
        self.add("events.jsonl", json.dumps({"time": time.time(), "kind": kind, **detail}))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


@pytest.fixture
def slow(tmp_path: Path) -> Written:
    """A reading a minute: on a machine that stands still for a moment none grows old while it is looked at."""
    return Written(tmp_path, period_seconds=60.0)


def test_what_is_served_is_what_was_recorded_last(slow: Written) -> None:
    followed = FollowedRun(slow.path)
    slow.add("samples/nvml.csv", f"{slow.start},61.5,99,0.1")
    slow.add("samples/nvml.csv", f"{slow.start + 1},62.5,98,0.1")
    slow.add("samples/bmc.csv", f"{slow.start},2800")
    now = followed.look()
    assert now.readings == {GPU: 62.5, USE: 98.0, PUMP: 2800.0}
    assert (now.recording, now.simulated, now.phase) == (True, True, "")
    with (slow.path / "samples" / "nvml.csv").open("a") as file:
        file.write(f"{slow.start + 2},99")  # half a row
    assert followed.look().readings[GPU] == 62.5


def test_a_missing_reading_is_gone_at_once_and_a_hung_source_after_a_while(written: Written) -> None:
    clock = [0.0]
    followed = FollowedRun(written.path, monotonic=lambda: clock[0])
    written.add("samples/nvml.csv", f"{written.start},61.5,99,0.1")
    written.add("samples/bmc.csv", f"{written.start},2800")
    assert set(followed.look().readings) == {GPU, USE, PUMP}
    written.add("samples/nvml.csv", f"{written.start + 1},,99,0.1")
    assert set(followed.look().readings) == {USE, PUMP}
    clock[0] = 6.0
    assert set(followed.look().readings) == {PUMP}, "five ticks of this source are fifty seconds"
    clock[0] = 51.0
    assert followed.look().readings == {}


def test_coverage_counts_what_was_due_also_where_no_row_came(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    began = written.start
    for second in range(20):
        written.add("samples/nvml.csv", f"{began + second},{'' if second % 2 else 40},1,0.1")
    written.add("events.jsonl", json.dumps({"time": began, "kind": "phase", "name": "baseline"}))
    monkeypatch.setattr(RunClock, "now", lambda _: began + 41.5)
    again = FollowedRun(written.path).look()
    assert again.phase == "baseline"
    assert again.coverage[USE] == 20 / 40
    assert again.coverage[GPU] == 10 / 40
    assert again.coverage[PUMP] == 0.0
    written.note(state="finished")
    assert FollowedRun(written.path).look().coverage == {}


def test_events_and_requests_are_counted(written: Written) -> None:
    followed = FollowedRun(written.path)
    written.event("load", what="started", load="cpu", tool="stress-ng")
    written.event("load", what="started", load="inference", tool="x")
    written.event("load", what="used", load="cpu", seconds=2)
    written.event("warning", text="hot")
    written.event("load", what="lost", load="cpu", text="gone")
    written.event("critical", text="very hot")
    written.add("events.jsonl", "no json")
    written.add("requests.csv", "start,ttft,latency,status,error,prompt_tokens,completion_tokens,phase")
    for status, error in ((200, ""), (200, ""), (503, "busy, twice"), ("", "cancelled: the load ends")):
        written.add("requests.csv", f'1.0,,2.0,{status},"{error}",1,2,steady')
    now = followed.look()
    assert now.loads == {"cpu": False, "inference": True}
    assert (now.warnings, now.errors) == (1, 2)
    assert now.requests == {"ok": 2, "failed": 1, "cancelled": 1}
    assert followed.look().requests == now.requests


def test_a_run_that_cannot_be_read_serves_nothing_and_comes_back(slow: Written) -> None:
    followed = FollowedRun(slow.path)
    text = (slow.path / "run.json").read_text()
    (slow.path / "run.json").write_text("{")
    slow.add("samples/nvml.csv", f"{slow.start},61.5,99,0.1")
    assert followed.look().readings == {}
    (slow.path / "run.json").write_text(text + " ")
    assert followed.look().readings[GPU] == 61.5


# ----------------------------------------------------------------------------------------------------------- as served


@pytest.fixture
def served(slow: Written) -> Iterator[Endpoint]:
    named = Named(bench='lab "7"\n', node="sk-secret", redact=lambda text: text.replace("sk-secret", "[key]"))
    endpoint = Endpoint(Address(host="127.0.0.1", port=0), named=named, run=lambda: slow.path)
    yield endpoint
    endpoint.close()


def scraped(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        found: str = answer.read().decode()
    return found


def test_the_answer_is_prometheus_text_with_units_and_never_nan(slow: Written, served: Endpoint) -> None:
    slow.event("phase", name="steady")
    slow.add("samples/nvml.csv", f"{slow.start},61.5,99,0.1")
    slow.add("samples/bmc.csv", f"{slow.start},nan")
    until(lambda: GPU in scraped(served.address.url))
    text = scraped(served.address.url)
    samples = {
        (sample.name, sample.labels.get("sensor", sample.labels.get("phase", ""))): sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    hot = samples["pytest_thermal_sensor_celsius", GPU]
    assert hot.value == 61.5
    assert hot.labels == {"sensor": GPU, "device": "gpu0", "bench": 'lab "7"\n', "node": "[key]"}
    assert samples["pytest_thermal_sensor_ratio", USE].value == pytest.approx(0.99)
    info = samples["pytest_thermal_run_info", ""]
    assert (info.value, info.labels["simulated"], info.labels["run"]) == (1.0, "true", slow.path.name)
    assert samples["pytest_thermal_phase", "steady"].value == 1.0
    assert samples["pytest_thermal_phase", "baseline"].value == 0.0
    assert "nan" not in text.lower()
    assert "sk-secret" not in text
    assert {family.name for family in text_string_to_metric_families(text)} <= {
        name.removesuffix("_total") for name in METRICS
    }
    slow.add("samples/nvml.csv", f"{slow.start + 1},,99,0.1")
    until(lambda: "pytest_thermal_sensor_celsius{" not in scraped(served.address.url))


def test_closed_it_listens_no_more(served: Endpoint) -> None:
    scraped(served.address.url)
    served.close()
    served.close()
    with pytest.raises(urllib.error.URLError):
        scraped(served.address.url)


def test_every_unit_has_a_name() -> None:
    assert set(OF_UNIT) == set(Unit)
    assert len({end for end, _, _ in OF_UNIT.values()}) == len(OF_UNIT)


@pytest.mark.parametrize(
    "text, found",
    [
        ("9105", ("127.0.0.1", 9105)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:9105", ("0.0.0.0", 9105)),
        ("[::1]:9105", ("::1", 9105)),
    ],
)
def test_an_address_is_read(text: str, found: tuple[str, int]) -> None:
    address = read_address(text)
    assert (address.host, address.port) == found


@pytest.mark.parametrize("text", ["", "http", "70000", "-1", "bench-7:9105", "1.2.3:9105", "9105x", "²"])
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"9105|127\.0\.0\.1"):
        read_address(text)


def test_a_taken_port_says_who_might_have_it_and_what_to_try() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LiveMetricsError) as told:
            check_free(Address(host="127.0.0.1", port=port))
        with pytest.raises(LiveMetricsError):
            Endpoint(Address(host="127.0.0.1", port=port), named=Named(bench="", node=""), run=lambda: None)
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in str(told.value)
    assert f"ss -ltnp 'sport = :{port}'" in told.value.remedy
    check_free(Address(host="127.0.0.1", port=port))


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(LiveMetricsError, match="prometheus_client, which is not installed") as told:
        check_free(Address(host="127.0.0.1", port=0))
    assert "pip install 'pytest-thermal[prometheus]'" in told.value.remedy


def test_the_dashboard_asks_for_nothing_that_is_not_served() -> None:
    dashboard = json.loads((DEPLOY / "pytest-thermal.json").read_text())
    asked = json.dumps(dashboard)
    named = set(re.findall(r"pytest_thermal_\w+", asked))
    assert len(named) > 12
    assert named <= set(METRICS)
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert all('bench=~"$bench"' in expr for expr in shown)
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_scrape_snippet_names_the_port_of_its_own_example() -> None:
    text = (DEPLOY / "prometheus.yml").read_text()
    (job,) = yaml.safe_load(text)["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    assert f"--prometheus-port {target.rpartition(':')[2]}" in text
