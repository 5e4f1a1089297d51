"""What the thermal run needs beside the core install, asked for before anything is loaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

NEEDED = ("numpy", "scipy")


def require_thermal_extra(has: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None) -> None:
    """Raise pytest.UsageError where what judges a thermal run is not installed."""
    missing = [name for name in NEEDED if not has(name)]
    if missing:
        raise pytest.UsageError(
            f"a thermal run needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed\n"
            "likely: only the core of pytest-thermal was installed, which is all that the access gate needs\n"
            "try: pip install 'pytest-thermal[thermal]'"
        )
