"""Loads: what makes heat and traffic, each as one process under a guard that always stops it.

What is heavy is imported when it is asked for: the guard, the burners and the load generator are processes of their
own, whose modules lie here too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_thermal.load.errors import LoadError
    from pytest_thermal.load.loads import Loads
    from pytest_thermal.load.running import LoadEnded, LoadStatus, RunningLoad, start
    from pytest_thermal.load.work import Work

_HOMES = {
    "errors": ("LoadError",),
    "loads": ("Loads",),
    "running": ("LoadEnded", "LoadStatus", "RunningLoad", "start"),
    "work": ("Work",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["LoadEnded", "LoadError", "LoadStatus", "Loads", "RunningLoad", "Work", "start"]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
