"""A run as Prometheus sees it while it goes on: read from the run directory, beside the recorder and not in its way."""

from __future__ import annotations

from pytest_thermal.reporting.live_metrics.endpoint import (
    Address,
    Endpoint,
    LiveMetricsError,
    check_free,
    read_address,
)
from pytest_thermal.reporting.live_metrics.families import METRICS, Named
from pytest_thermal.reporting.live_metrics.followed_run import FollowedRun, Snapshot

__all__ = [
    "METRICS",
    "Address",
    "Endpoint",
    "FollowedRun",
    "LiveMetricsError",
    "Named",
    "Snapshot",
    "check_free",
    "read_address",
]
