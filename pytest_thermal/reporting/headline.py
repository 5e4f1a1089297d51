"""The one number of a finding, with its unit, its limit, and where the limit came from."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_thermal.model import Finding
from pytest_thermal.reporting.measured import main_name, measured, unit_of
from pytest_thermal.reporting.observed import plain_scalar


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
    # Plain first: a NumPy scalar is a number too.
    evidence = {name: plain_scalar(value) if value is not None else None for name, value in found.evidence.items()}
    name = main_name(found.check, evidence)
    figure = measured(evidence, check=found.check).figure(name)
    value = _number(figure.value) if figure is not None else None
    if figure is None or value is None:
        return None
    limit = _number(figure.limit)
    return Headline(
        name=name,
        value=value,
        unit=unit_of(name),
        limit=limit,
        limit_origin=figure.limit_origin if limit is not None else "",
        at_least=figure.at_least,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
