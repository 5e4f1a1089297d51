"""Whether what follows can be believed: every sensor was read, the bench was cold and idle, and the load was real."""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Thermal

pytestmark = pytest.mark.thermal


@pytest.mark.critical
def test_coverage(thermal: Thermal, sensor: str) -> None:
    """The sensor was read throughout without a hole, and what it told can be believed."""
    thermal.require("coverage", sensor)


@pytest.mark.critical
def test_baseline(thermal: Thermal, sensor: str) -> None:
    """The temperature stood still before the load, on an idle device."""
    thermal.require("baseline", sensor)


@pytest.mark.critical
def test_load(thermal: Thermal, device: str) -> None:
    """The device was loaded in full throughout: cool because idle is no pass."""
    thermal.require("load", device)
