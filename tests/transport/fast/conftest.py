"""Every test of a connection is one on each loop that it may run on."""

from __future__ import annotations

import asyncio

import pytest

from tests.transport.fast.helpers import on_uvloop


@pytest.fixture(params=["asyncio", "uvloop"], autouse=True)
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "uvloop":
        monkeypatch.setattr(asyncio, "run", on_uvloop)
