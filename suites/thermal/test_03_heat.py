"""How hot it got, how far that is above the baseline, and whether it had settled."""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Thermal

pytestmark = pytest.mark.thermal


@pytest.mark.critical
def test_threshold(thermal: Thermal, sensor: str) -> None:
    """The highest temperature stayed below its limit: the device's own, or the bench file's if that is lower."""
    thermal.require("threshold", sensor)


@pytest.mark.critical
def test_rise(thermal: Thermal, sensor: str) -> None:
    """The rise over the baseline is what a well-built liquid-cooled machine shows."""
    thermal.require("rise", sensor)


@pytest.mark.critical
def test_settled(thermal: Thermal, sensor: str) -> None:
    """The temperature had settled at the end of the load, so that the rise is the whole rise."""
    thermal.require("settled", sensor)
