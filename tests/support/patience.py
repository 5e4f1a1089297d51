"""Waiting for what should have come long ago: no limit of the product, and no measure of a machine's speed."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 90.0
"""When a test gives up. Costs nothing where the thing happens, and a busy machine may stand still for many seconds."""


def until(
    condition: Callable[[], object], told: Callable[[], str] = str, *, patience_seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait for something to come true; ``told`` says more where it does not."""
    deadline = time.monotonic() + patience_seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain\n{told()}"
        time.sleep(0.02)
