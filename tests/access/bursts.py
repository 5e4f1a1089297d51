"""Bursts of the capacity checks against a demo gateway, whose requests are there at the same time for certain."""

from __future__ import annotations

import pytest

from pytest_thermal.access import Gateway
from pytest_thermal.access.burst import Burst, fire
from pytest_thermal.access.probes import capacity
from pytest_thermal.demo import DemoGateway
from tests.support.meeting import Meeting


def bursts_meet(demo: DemoGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many requests as a burst has workers wait for each other at the gateway."""
    meeting = Meeting(demo)

    def fired(gateway: Gateway, *, requests: int, workers: int) -> Burst:
        with meeting.of(min(workers, requests)):
            return fire(gateway, requests=requests, workers=workers)

    monkeypatch.setattr(capacity, "fire", fired)
