"""What the thermal run needs beside the core install, asked for before anything is loaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

from pytest_thermal.model.findings import told_lines
from pytest_thermal.model.said import joined, say

NEEDED = ("numpy", "scipy")


def require_thermal_extra(has: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None) -> None:
    """Raise pytest.UsageError where what judges a thermal run is not installed."""
    missing = [name for name in NEEDED if not has(name)]
    if missing:
        raise pytest.UsageError(
            told_lines(
                say("a thermal run needs {name}, which is not installed", name=missing[0])
                if len(missing) == 1
                else say("a thermal run needs {names}, which are not installed", names=joined(" and ", missing)),
                likely=say("only the core of pytest-thermal was installed, which is all that the access gate needs"),
                remedy=say("pip install 'pytest-thermal[thermal]'"),
            )
        )
