"""Hooks for third parties.

Implement them with ``@pytest.hookimpl(optionalhook=True)``, so that a conftest still
loads where this plugin is not installed.
"""

from __future__ import annotations

from typing import Any

import pytest


def pytest_thermal_metadata(config: pytest.Config, metadata: dict[str, Any]) -> None:
    """Add facts about the bench (rack, serial numbers, firmware …) to ``metadata``, which reports show.

    Values are text, numbers, booleans or None; keys of the bench are taken out of them.
    """
