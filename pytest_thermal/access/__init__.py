"""From outside in: what stands between this machine and an answer, and what to do about it."""

from __future__ import annotations

from pytest_thermal.access.checks import CHECKS, Check
from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.health import HealthBreak, HealthLog, HealthMonitor
from pytest_thermal.access.ladder import Ladder
from pytest_thermal.access.ledger import Ledger, Spending
from pytest_thermal.access.plan import Plan

__all__ = [
    "CHECKS",
    "Check",
    "Gateway",
    "HealthBreak",
    "HealthLog",
    "HealthMonitor",
    "Ladder",
    "Ledger",
    "Plan",
    "Spending",
]
