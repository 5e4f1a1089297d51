"""Every node that belongs to the fleet: its newest run is there, whole, comparable with the others, and good."""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Fleet

pytestmark = pytest.mark.fleet


@pytest.mark.critical
def test_node(fleet: Fleet, node: str) -> None:
    """The node's newest run is whole and sealed, passed its own checks, and is as good as the others and as before."""
    fleet.require("node", node)


@pytest.mark.advisory
def test_simultaneous(fleet: Fleet) -> None:
    """All nodes were under full load at one time, as far as their clocks tell."""
    fleet.require("simultaneous", "fleet")
