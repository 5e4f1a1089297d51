"""The loop and what it does for the work: throttling, pump, leak, rebound, throughput."""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Thermal

pytestmark = pytest.mark.thermal


@pytest.mark.critical
def test_throttling(thermal: Thermal, device: str) -> None:
    """The device never slowed itself down because of heat."""
    thermal.require("throttling", device)


@pytest.mark.critical
def test_pump(thermal: Thermal, sensor: str) -> None:
    """The pump ran throughout."""
    thermal.require("pump", sensor)


@pytest.mark.critical
def test_leak(thermal: Thermal, sensor: str) -> None:
    """The leak detector saw the loop dry throughout."""
    thermal.require("leak", sensor)


@pytest.mark.critical
def test_rebound(thermal: Thermal, sensor: str) -> None:
    """The temperature only fell once the load was off."""
    thermal.require("rebound", sensor)


@pytest.mark.critical
def test_throughput(thermal: Thermal, device: str) -> None:
    """Inference was as fast at the end of steady as at its beginning."""
    thermal.require("throughput", device)
