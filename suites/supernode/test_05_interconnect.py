"""Interconnect: are the links between the cards up, the configured ones, and as fast as they should be?"""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import Access


@pytest.mark.critical
def test_interconnect(access: Access) -> None:
    """RDMA devices are there and their links are up."""
    access.require("interconnect")


@pytest.mark.critical
def test_interconnect_fallback(access: Access) -> None:
    """Traffic runs over the configured protocol, not over its fallback."""
    access.require("interconnect_fallback")


@pytest.mark.critical
def test_interconnect_latency(access: Access) -> None:
    """The measured latency meets `latency_target_us` (`--interconnect-cmd`)."""
    access.require("interconnect_latency")
