"""Loads: what makes heat and traffic, each as one process under a guard that always stops it.

What is heavy is imported when it is asked for: the guard, the burners and the load generator are processes of their
own, whose modules lie here too. `inference_work` is in the module of its name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_thermal.load.accelerator import accelerator_works, torch_device
    from pytest_thermal.load.cpu import cpu_work
    from pytest_thermal.load.errors import LoadError
    from pytest_thermal.load.loads import Loads
    from pytest_thermal.load.orders import PROFILES
    from pytest_thermal.load.plan import burn_works, plan_works
    from pytest_thermal.load.running import LoadEnded, LoadStatus, LoadUse, RunningLoad, start
    from pytest_thermal.load.work import Work, WorkKind

_HOMES = {
    "accelerator": ("accelerator_works", "torch_device"),
    "cpu": ("cpu_work",),
    "errors": ("LoadError",),
    "loads": ("Loads",),
    "orders": ("PROFILES",),
    "plan": ("burn_works", "plan_works"),
    "running": ("LoadEnded", "LoadStatus", "LoadUse", "RunningLoad", "start"),
    "work": ("Work", "WorkKind"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "PROFILES",
    "LoadEnded",
    "LoadError",
    "LoadStatus",
    "LoadUse",
    "Loads",
    "RunningLoad",
    "Work",
    "WorkKind",
    "accelerator_works",
    "burn_works",
    "cpu_work",
    "plan_works",
    "start",
    "torch_device",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
