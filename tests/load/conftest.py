"""Loads are given time to end: that a stopped one is gone within two seconds is a promise of an idle machine."""

from __future__ import annotations

import pytest

from pytest_thermal.load import running
from tests.support.patience import PATIENCE_SECONDS


@pytest.fixture(autouse=True, scope="package")
def _patience() -> object:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running, "START_SECONDS", PATIENCE_SECONDS)
        patched.setattr(running, "STOP_SECONDS", PATIENCE_SECONDS)
        yield
