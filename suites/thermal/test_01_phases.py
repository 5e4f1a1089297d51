"""The run itself: cold baseline, ramp, full-load steady, the limit where it is asked for, and cooldown."""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Thermal

pytestmark = pytest.mark.thermal


@pytest.mark.critical
def test_phase(thermal: Thermal, phase: str) -> None:
    """The phase was gone through in full, under its load, with the recorder at work."""
    thermal.require("phase", phase)
