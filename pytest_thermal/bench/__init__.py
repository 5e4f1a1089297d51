"""The bench: the machine or supernode under test, as its `settings.json` and `config.toml` describe it.

What reads all of it is imported when it is asked for: a list of tests needs no more than the names of its domains.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_thermal.bench.errors import BenchError
    from pytest_thermal.bench.kinds import parse_duration
    from pytest_thermal.bench.load import load_bench
    from pytest_thermal.bench.model import (
        Bench,
        Cluster,
        Domain,
        HealthCheck,
        Inference,
        Logging,
        ModelRoute,
        Monitor,
        RateLimit,
        RetryPolicy,
        ScaleOut,
        Scheduler,
        Stress,
        Timeouts,
    )
    from pytest_thermal.bench.quick_names import quick_domain_names
    from pytest_thermal.bench.secrets import Redactor, describe_key
    from pytest_thermal.bench.templates import find_template, template_names
    from pytest_thermal.bench.urls import is_loopback, normalise_base_url

_HOMES = {
    "errors": ("BenchError",),
    "kinds": ("parse_duration",),
    "load": ("load_bench",),
    "model": (
        "Bench",
        "Cluster",
        "Domain",
        "HealthCheck",
        "Inference",
        "Logging",
        "ModelRoute",
        "Monitor",
        "RateLimit",
        "RetryPolicy",
        "ScaleOut",
        "Scheduler",
        "Stress",
        "Timeouts",
    ),
    "quick_names": ("quick_domain_names",),
    "secrets": ("Redactor", "describe_key"),
    "templates": ("find_template", "template_names"),
    "urls": ("is_loopback", "normalise_base_url"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Bench",
    "BenchError",
    "Cluster",
    "Domain",
    "HealthCheck",
    "Inference",
    "Logging",
    "ModelRoute",
    "Monitor",
    "RateLimit",
    "Redactor",
    "RetryPolicy",
    "ScaleOut",
    "Scheduler",
    "Stress",
    "Timeouts",
    "describe_key",
    "find_template",
    "is_loopback",
    "load_bench",
    "normalise_base_url",
    "parse_duration",
    "quick_domain_names",
    "template_names",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
