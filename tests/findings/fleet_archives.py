"""Archives of fleets by construction: sealed runs whose summaries hold the figures that a test wants, no samples."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pytest_thermal import __version__
from pytest_thermal.bench import Monitor
from pytest_thermal.bench.fleet_file import FleetFile, read_fleet_file
from pytest_thermal.findings import limits_for
from pytest_thermal.findings.fleet.archive import find_fleet
from pytest_thermal.findings.fleet.judgement import FleetJudgement
from pytest_thermal.model import Sensor, Unit
from pytest_thermal.recording.layout import checksums
from pytest_thermal.recording.words import sensor_to_json
from tests.analysis.signals import EPOCH

MEDIAN = 36.0
"""°C of rise that a healthy card is near to."""
LENGTHS = {"baseline": 300.0, "ramp": 120.0, "steady": 3600.0, "cooldown": 600.0}
WATTS = 600.0
Figures = Mapping[str, float]
Change = Callable[[dict[str, Any]], None]


def card_of(index: int) -> str:
    return f"gpu{index}.temperature_celsius"


def sensors_of(cards: int) -> list[Sensor]:
    found = []
    for index in range(cards):
        device = f"gpu{index}"
        found.append(
            Sensor(id=card_of(index), unit=Unit.CELSIUS, device=device, identity=f"ID-{device}", source="invented")
        )
        found.append(
            Sensor(
                id=f"{device}.power_watts",
                unit=Unit.WATTS,
                device=device,
                identity=f"ID-{device}",
                source="invented",
                limits={"cap": 700.0},
            )
        )
    return found


def facts_of(host: str, cards: int, *, start: float) -> dict[str, Any]:
    phases, at = [], start
    for name, seconds in LENGTHS.items():
        phases.append({"name": name, "start_seconds": at, "end_seconds": at + seconds})
        at += seconds
    return {
        "format": 1,
        "name": host,
        "state": "finished",
        "start_seconds": start,
        "end_seconds": at,
        "host": {"name": host, "product": "AI node", "bios": "1.2"},
        "versions": {"pytest-thermal": __version__},
        "drivers": {"nvidia": "570.86"},
        "bench": "pod",
        "simulated": False,
        "load": {"mode": "gpu", "concurrent_requests": 8},
        "plan": {"seconds": LENGTHS},
        "gateways": {"pod": "http://10.0.0.9/v1"},
        "works": [{"kind": "accelerator", "tool": "gpu-burn 1.1"}],
        "sensors": [sensor_to_json(sensor) for sensor in sensors_of(cards)],
        "phases": phases,
    }


def figure(name: str, value: float | None, unit: str = "celsius", **detail: Any) -> dict[str, Any]:
    return {
        "name": name, "value": value, "unit": unit, "uncertainty": 0.1, "reason": "" if value is not None else "none",
        "detail": detail,
    }  # fmt: skip


def summary_of(rises: Mapping[int, float], *, cards: int, seed: int, slow: Mapping[int, float]) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    figures, findings = {}, []
    for index in range(cards):
        rise = MEDIAN + float(rng.normal(0.0, 0.8)) + rises.get(index, 0.0)
        figures[card_of(index)] = [
            figure("peak", 32.0 + rise),
            figure("steady", 31.0 + rise),
            figure("rise", rise),
            figure("slow_time_constant", 280.0 + float(rng.normal(0.0, 9.0)) + slow.get(index, 0.0), "seconds"),
            figure("resistance", rise / WATTS, "celsius/watt", watts=WATTS, reference="baseline"),
        ]
        findings += [told("load", f"gpu{index}"), told("rise", card_of(index)), told("threshold", card_of(index))]
    return {"simulated": False, "time_scale": 1.0, "figures": figures, "findings": findings, "warnings": []}


def told(check: str, subject: str, outcome: str = "passed", seen: str = "", **more: str) -> dict[str, Any]:
    return {
        "check": check, "subject": subject, "outcome": outcome, "seen": seen or f"{subject} is well", "likely": "",
        "advice": "", "evidence": {}, "warnings": [], **more,
    }  # fmt: skip


def write_node(
    archive: Path,
    host: str,
    *,
    rises: Mapping[int, float] | None = None,
    slow: Mapping[int, float] | None = None,
    cards: int = 4,
    start: float = EPOCH,
    facts: Change = lambda _: None,
    summary: Change = lambda _: None,
    requests: str = "",
    sealed: bool = True,
) -> Path:
    """A node's run; ``rises`` and ``slow`` are what its cards have more than healthy ones, °C and seconds."""
    run = archive / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(start))}_{host}"
    run.mkdir(parents=True)
    data = facts_of(host, cards, start=start)
    facts(data)
    seed = sum(map(ord, host)) + int(start) % 97
    found = summary_of(rises or {}, cards=cards, seed=seed, slow=slow or {})
    summary(found)
    (run / "summary.json").write_text(json.dumps(found))
    if requests:
        (run / "requests.csv").write_text(requests)
    if sealed:
        data["sha256"] = checksums(run)
    (run / "run.json").write_text(json.dumps(data))
    return run


def request_rows(per_second: float, *, start: float = EPOCH, limited: float = 0.0, seconds: float = 3600.0) -> str:
    """Requests of steady, of which a share is refused with 429."""
    rows = ["start,ttft,latency,status,error,prompt_tokens,completion_tokens,phase"]
    begin = start + LENGTHS["baseline"] + LENGTHS["ramp"]
    count = int(per_second * seconds)
    for index in range(count):
        at = begin + index / per_second
        if limited and index % round(1 / limited) == 0:
            rows.append(f"{at:.3f},,0.01,429,429 Too Many Requests,,,steady")
        else:
            rows.append(f"{at:.3f},0.1,0.5,200,,50,100,steady")
    return "\n".join(rows) + "\n"


def names(count: int) -> list[str]:
    return [f"n{number:02}" for number in range(1, count + 1)]


def write_fleet(archive: Path, count: int = 6, **special: Mapping[str, Any]) -> None:
    """Healthy nodes, but for those that are told of by name."""
    for host in names(count):
        if special.get(host) is not LEFT_OUT:
            write_node(archive, host, **special.get(host, {}))


LEFT_OUT: Mapping[str, Any] = {}
"""For a node of ``write_fleet`` that is to have no run."""


def judged(archive: Path, *, fleet: str = "", expected: Mapping[str, str] | None = None, **more: Any) -> FleetJudgement:
    places: FleetFile | None = None
    known = dict(expected or {})
    if fleet:
        (archive / "fleet.toml").write_text(fleet)
        places = read_fleet_file(archive / "fleet.toml")
        known |= dict.fromkeys(places.hosts, "fleet.toml")
    return FleetJudgement(find_fleet(archive, expected=known), limits_for(Monitor()), places=places, **more)
