"""Words everything else is written in: layers, outcomes, findings."""

from __future__ import annotations

from pytest_thermal.model.findings import LAYERS, Finding, Outcome, is_outside

__all__ = ["LAYERS", "Finding", "Outcome", "is_outside"]
