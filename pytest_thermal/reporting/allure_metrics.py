"""A run's figures as Allure 3's metrics: shown with their change since the last run, and kept in its history."""

from __future__ import annotations

import uuid
from typing import Any

from pytest_thermal.findings import Judgement
from pytest_thermal.findings.run_facts import is_simulated

FILE = "{id}-perf.json"
"""Allure reads every file of such a name."""
SHOWN = {
    "baseline": ("baseline", "°C"),
    "steady": ("steady", "°C"),
    "rise": ("rise", "°C"),
    "peak": ("peak", "°C"),
    "resistance": ("resistance", "°C/W"),
}
"""Figure → its title and unit. Lower is better in each."""


def allure_metrics(judgement: Judgement, *, node: str) -> list[dict[str, Any]]:
    """One entry a figure.

    Allure averages what has one key, so the node is part of it, and the bench: a demo run is no step of a real
    machine's history. Each entry tells its own title and unit, so that merged results need no list of them.
    """
    recording = judgement.recording
    start = float(recording.facts.get("start_seconds") or recording.start_seconds or 0.0)
    end = float(recording.facts.get("end_seconds") or recording.end_seconds or start)
    bench = str(recording.facts.get("bench") or "log")
    where = f"{node} ({bench}{', simulated' if is_simulated(recording.facts) else ''})"
    found = []
    for sensor, figures in judgement.figures().items():
        part = sensor.removesuffix(".temperature_celsius")
        known = {figure.name: figure.value for figure in reversed(figures) if figure.name in SHOWN}
        for name, (title, unit) in SHOWN.items():
            value = known.get(name)
            if value is None:
                continue
            key = f"{where}.{part}.{name}"
            found.append(
                {
                    "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{recording.path.name} {key}")),
                    "key": key,
                    "value": round(float(value), 4),
                    "start": int(1000 * start),
                    "stop": int(1000 * max(end, start)),
                    "title": f"{part} {title}",
                    "unit": unit,
                    "better": "lower",
                    "group": where,
                    "groupTitle": where,
                }
            )
    return found
