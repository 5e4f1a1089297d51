"""Each card against all cards of its kind, and each place in the racks against the others."""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Fleet

pytestmark = pytest.mark.fleet


@pytest.mark.critical
def test_consistency(fleet: Fleet, temperature: str) -> None:
    """In no node this temperature stands out of the fleet, its place taken into account."""
    fleet.require("consistency", temperature)


@pytest.mark.critical
def test_place(fleet: Fleet, place: str) -> None:
    """No rack, slot, branch or manifold is warmer or colder than the others, whatever cards are in it."""
    fleet.require("place", place)
