"""Waiting for what should have come long ago."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 90.0
"""When a test gives up: no limit of the product, and reached by nothing that works."""


def until(condition: Callable[[], object]) -> None:
    """Wait for something to come true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
