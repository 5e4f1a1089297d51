"""Words everything else is written in: layers, outcomes, findings; units, sensors, readings."""

from __future__ import annotations

from pytest_thermal.model.findings import LAYERS, Finding, Outcome, is_outside
from pytest_thermal.model.readings import Missing, Reading, Sensor, Unit

__all__ = ["LAYERS", "Finding", "Missing", "Outcome", "Reading", "Sensor", "Unit", "is_outside"]
