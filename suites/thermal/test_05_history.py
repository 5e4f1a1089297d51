"""This run against an earlier one of the same bench."""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Thermal

pytestmark = pytest.mark.thermal


@pytest.mark.critical
def test_drift(thermal: Thermal, sensor: str) -> None:
    """The rise, or the resistance where both runs have one, is what it was."""
    thermal.require("drift", sensor)
