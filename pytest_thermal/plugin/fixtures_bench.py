"""Fixtures about the bench itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_thermal.plugin.active_bench import active_bench

if TYPE_CHECKING:
    from pytest_thermal.bench import Bench


@pytest.fixture(scope="session")
def bench(pytestconfig: pytest.Config) -> Bench:
    """The bench under test: every setting, with the place it came from (`bench.origin("timeouts.read_seconds")`)."""
    active = active_bench(pytestconfig)
    active.start()
    return active.bench
