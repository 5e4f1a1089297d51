"""Sensors and readings as JSON, between processes and in ``run.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pytest_thermal.model import Sensor
from pytest_thermal.model.readings import Unit


def sensor_to_json(sensor: Sensor) -> dict[str, Any]:
    """A sensor as plain data."""
    return {
        "id": sensor.id,
        "unit": sensor.unit.value,
        "device": sensor.device,
        "identity": sensor.identity,
        "source": sensor.source,
        "label": sensor.label,
        "limits": {name: value for name, value in sensor.limits.items() if math.isfinite(value)},
    }


def sensor_from_json(data: Mapping[str, Any]) -> Sensor:
    """A sensor from plain data; what a newer version added is left out.

    Raises:
        ValueError: A field is missing or has no possible value.
    """
    try:
        return Sensor(
            id=str(data["id"]),
            unit=Unit(data["unit"]),
            device=str(data["device"]),
            identity=str(data["identity"]),
            source=str(data["source"]),
            label=str(data.get("label", "")),
            limits={str(name): float(value) for name, value in dict(data.get("limits", {})).items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no sensor: {error!r}") from error
