"""A warning fails our own tests, and only ours.

Said here and not in pyproject.toml, whose settings also hold for ``pytest suites/…`` in a checkout: there a
library's deprecation, or a warning that is itself a finding, must not turn a good machine into a failed one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent

FILTERS = (
    "error",
    # A finding's note to the reader. Tests that run pytest inside this process hand these filters on to it.
    "always::pytest_thermal.plugin.outcomes.FindingWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the filters in front, so that a test's own ``filterwarnings`` mark still has the last word."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings(*FILTERS), append=False)
