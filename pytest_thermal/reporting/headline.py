"""The one number of a finding, with its unit, its limit, and where the limit came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_thermal.model import Finding
from pytest_thermal.reporting.observed import plain_scalar

VALUES: Mapping[str, tuple[str, str]] = {
    "baseline": ("baseline_celsius", "limit_celsius"),
    "threshold": ("peak_celsius", "limit_celsius"),
    "rise": ("rise_celsius", "limit_celsius"),
    "settled": ("slope_celsius_per_minute", "limit_celsius_per_minute"),
    "rebound": ("rebound_celsius", "limit_celsius"),
    "drift": ("drift_celsius", "limit_celsius"),
    "throttling": ("steady_thermal_milliseconds", "limit_milliseconds"),
    "load": ("utilization_percent", ""),
    "pump": ("lowest_rpm", ""),
    "leak": ("worst_state", ""),
    "coverage": ("coverage", ""),
    "phase": ("seconds", ""),
    "throughput": ("held", "limit"),
    "interconnect_latency": ("latency_us", "target_us"),
}
"""By check: which of its evidence is the number that it is about, and which its limit; ``""``: there is none."""

AT_LEAST = frozenset({"throughput"})
"""Checks whose limit is the least that is allowed; of all others it is the most."""

UNITS = (
    ("_celsius_per_minute", "celsius/minute"),
    ("_kelvin_per_minute", "kelvin/minute"),
    ("_liters_per_minute", "liters/minute"),
    ("_milliseconds", "milliseconds"),
    ("_celsius", "celsius"),
    ("_kelvin", "kelvin"),
    ("_watts", "watts"),
    ("_percent", "percent"),
    ("_seconds", "seconds"),
    ("_bytes", "bytes"),
    ("_rpm", "rpm"),
    ("_us", "microseconds"),
)
_WHOLE = {
    "seconds": "seconds",
    "coverage": "ratio",
    "held": "ratio",
    "requests": "count",
    "polls": "count",
    "worst_state": "state",
}


@dataclass(frozen=True, kw_only=True)
class Headline:
    """Value and limit of a finding, in the same unit."""

    name: str
    """Of the evidence: ``rise_celsius``."""
    value: float
    unit: str
    limit: float | None
    limit_origin: str
    """In words: ``default``, ``config.toml [thermal] alert_threshold_gpu``; empty where there is no limit."""
    at_least: bool
    """Whether the limit is the least that is allowed, and not the most."""


def headline(found: Finding) -> Headline | None:
    """The number that a finding is about; None where it has none.

    A finding of somebody else's check has one where its evidence is called ``value_<unit>`` and, if it has a limit,
    ``limit_<unit>`` with ``limit_origin``.
    """
    evidence = found.evidence
    name, limit_name = VALUES.get(found.check) or _foreign(evidence)
    value = _number(evidence.get(name))
    if value is None:
        return None
    limit = _number(evidence.get(limit_name))
    return Headline(
        name=name,
        value=value,
        unit=unit_of(name),
        limit=limit,
        limit_origin=str(evidence.get("limit_origin") or _default_origin(limit_name)) if limit is not None else "",
        at_least=found.check in AT_LEAST,
    )


def unit_of(name: str) -> str:
    """The unit in the name of an evidence; empty where it has none."""
    return _WHOLE.get(name) or next((unit for end, unit in UNITS if name.endswith(end)), "")


def _foreign(evidence: Mapping[str, object]) -> tuple[str, str]:
    name = next((name for name in evidence if name == "value" or name.startswith("value_")), "")
    return name, "limit" + name.removeprefix("value") if name else ""


def _default_origin(limit_name: str) -> str:
    return "latency_target_us of the bench" if limit_name == "target_us" else ""


def _number(value: object) -> float | None:
    plain = plain_scalar(value) if value is not None else None
    return float(plain) if isinstance(plain, int | float) and not isinstance(plain, bool) else None
