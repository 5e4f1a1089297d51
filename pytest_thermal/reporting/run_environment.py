"""What a run says of the machine it was made on, as Allure's environment has it: a name and a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_thermal.findings.run_facts import is_simulated
from pytest_thermal.findings.subjects import in_order
from pytest_thermal.findings.telling import span
from pytest_thermal.recording import Recording

MOST_DEVICES = 40


def node_name(recording: Recording) -> str:
    """The machine that a run was made on; a log from elsewhere does not say, and its own name stands for it."""
    return str(_mapping(recording.facts.get("host")).get("name") or recording.path.stem)


def run_environment(recording: Recording) -> dict[str, str]:
    """Host, processor, devices, drivers, load, phases and where the run lies; only what the run knows."""
    return {name: text for name, text in _lines(recording) if text}


def _lines(recording: Recording) -> Iterator[tuple[str, str]]:
    facts = recording.facts
    host = _mapping(facts.get("host"))
    name = str(host.get("name") or "")
    yield "Node", node_name(recording)
    yield "Bench", str(facts.get("bench") or "")
    system = _joined(host.get("system"), host.get("kernel"), host.get("machine"), host.get("container"))
    yield "Host", f"{name} ({system})" if name and system else name
    yield "Product", _joined(host.get("product"), host.get("board"), _versioned("BIOS", host.get("bios")))
    cores = host.get("cpus")
    yield "Processor", _joined(host.get("cpu"), f"{cores} logical" if cores else "")
    memory = host.get("memory_bytes")
    yield "Memory", f"{memory / 2**30:.0f} GiB" if isinstance(memory, (int, float)) else ""
    yield "Devices", _devices(recording)
    yield "Drivers and firmware", _drivers(facts)
    yield "Load", "; ".join(str(work.get("tool")) for work in facts.get("works") or () if isinstance(work, Mapping))
    yield "Phases", ", ".join(f"{phase.name} {span(phase.duration_seconds)}" for phase in recording.phases)
    yield "Run", f"{recording.path.name} ({recording.state})"
    yield "Evidence", "SIMULATED (demo bench)" if is_simulated(facts) else "measured"


def _devices(recording: Recording) -> str:
    """Each device with its model, else with what it is known by."""
    models = {str(one.get("identity")): one.get("model") for one in _accelerators(recording.facts)}
    found: dict[str, str] = {}
    for sensor in in_order(series.sensor for series in recording.series.values()):
        if sensor.device not in found:
            known = models.get(sensor.identity) or (sensor.identity if sensor.identity != sensor.device else "")
            found[sensor.device] = f"{sensor.device}: {known}" if known else sensor.device
    lines = list(found.values())
    more = f"; and {len(lines) - MOST_DEVICES} more" if len(lines) > MOST_DEVICES else ""
    return "; ".join(lines[:MOST_DEVICES]) + more


def _drivers(facts: Mapping[str, Any]) -> str:
    found = [f"{name} {version}" for name, version in _mapping(facts.get("drivers")).items()]
    firmware = dict.fromkeys(one.get("firmware") for one in _accelerators(facts))
    found += [f"firmware {version}" for version in firmware if version]
    return "; ".join(found)


def _accelerators(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    told = facts.get("accelerators")
    return [one for one in told if isinstance(one, Mapping)] if isinstance(told, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _versioned(name: str, version: object) -> str:
    return f"{name} {version}" if version else ""


def _joined(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part)
