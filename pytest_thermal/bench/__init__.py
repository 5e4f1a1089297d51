"""The bench: the machine or supernode under test, as its `settings.json` and `config.toml` describe it."""

from __future__ import annotations

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
from pytest_thermal.bench.secrets import Redactor, describe_key
from pytest_thermal.bench.templates import find_template, template_names
from pytest_thermal.bench.urls import is_loopback, normalise_base_url

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
    "template_names",
]
