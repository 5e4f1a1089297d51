"""Criteria: limits, where each came from, and the verdict on a recording in words.

What needs numpy is imported when it is asked for: which subjects a check has is asked while tests are collected.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pytest_thermal.findings.subjects import CHECKS, INFERENCE, subjects

if TYPE_CHECKING:
    from pytest_thermal.findings.earlier import Earlier, choose_earlier
    from pytest_thermal.findings.foreign_phases import with_phases
    from pytest_thermal.findings.judgement import Judgement, finding_as_json
    from pytest_thermal.findings.limits import Limit, Limits, limits_for
    from pytest_thermal.findings.run_facts import is_simulated, planned_loads, time_scale_of
    from pytest_thermal.findings.stretching import stretch

_HOMES = {
    "earlier": ("Earlier", "choose_earlier"),
    "foreign_phases": ("with_phases",),
    "judgement": ("Judgement", "finding_as_json"),
    "limits": ("Limit", "Limits", "limits_for"),
    "run_facts": ("is_simulated", "planned_loads", "time_scale_of"),
    "stretching": ("stretch",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CHECKS",
    "INFERENCE",
    "Earlier",
    "Judgement",
    "Limit",
    "Limits",
    "choose_earlier",
    "finding_as_json",
    "is_simulated",
    "limits_for",
    "planned_loads",
    "stretch",
    "subjects",
    "time_scale_of",
    "with_phases",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
