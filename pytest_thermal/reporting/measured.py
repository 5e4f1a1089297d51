"""What a finding measured: each figure of its evidence with its unit, its uncertainty and its limit.

The one place that knows which of them belong together; words and tables around them are others' business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_thermal.model.findings import Scalar

MAIN: Mapping[str, str] = {
    "baseline": "baseline_celsius",
    "threshold": "peak_celsius",
    "rise": "rise_celsius",
    "settled": "slope_celsius_per_minute",
    "rebound": "rebound_celsius",
    "drift": "drift_celsius",
    "throttling": "steady_thermal_milliseconds",
    "load": "utilization_percent",
    "pump": "lowest_rpm",
    "leak": "worst_state",
    "coverage": "coverage",
    "phase": "seconds",
    "throughput": "held",
    "interconnect_latency": "latency_us",
}
"""By check: which of its evidence is the number that it is about."""
AT_LEAST = frozenset({"held"})
"""Figures whose limit is the least that is allowed; of any other it is the most."""
SHARES = frozenset({"held", "on_plateau", "throughput_held", "coverage"})
"""Shares of 1."""


@dataclass(frozen=True, kw_only=True)
class UnitOfName:
    """The unit that stands at the end of a name."""

    end: str
    words: str
    """``celsius/minute``."""
    sign: str
    """As people write it: ``K/min``."""
    decimals: int


UNITS = tuple(
    UnitOfName(end=f"_{end}", words=words, sign=sign, decimals=decimals)
    for end, words, sign, decimals in (
        ("celsius_per_minute", "celsius/minute", "K/min", 3),
        ("kelvin_per_minute", "kelvin/minute", "K/min", 3),
        ("liters_per_minute", "liters/minute", "l/min", 2),
        ("milliseconds", "milliseconds", "ms", 0),
        ("microseconds", "microseconds", "µs", 1),
        ("celsius", "celsius", "°C", 1),
        ("kelvin", "kelvin", "K", 1),
        ("watts", "watts", "W", 0),
        ("percent", "percent", "%", 0),
        ("seconds", "seconds", "s", 2),
        ("bytes", "bytes", "bytes", 0),
        ("rpm", "rpm", "rpm", 0),
        ("us", "microseconds", "µs", 1),
    )
)
"""The longest of those that end alike first."""
_WHOLE = {
    "seconds": "seconds",
    "coverage": "ratio",
    "held": "ratio",
    "requests": "count",
    "polls": "count",
    "worst_state": "state",
}
_LIMITS = ("limit", "target")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One figure of an evidence."""

    name: str
    value: Scalar
    uncertainty: Scalar = None
    limit_name: str = ""
    limit: Scalar = None
    """In the figure's unit; None where it has none."""
    limit_origin: str = ""

    @property
    def at_least(self) -> bool:
        """Whether the limit is the least that is allowed, and not the most."""
        return self.name in AT_LEAST


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All of a finding."""

    figures: Sequence[Measured]
    """In the order in which the check tells them."""
    loose_limits: Mapping[str, Scalar]
    """Limits of which no figure is told: for how long something must last, say."""

    def figure(self, name: str) -> Measured | None:
        """One by name."""
        return next((one for one in self.figures if one.name == name), None)


def measured(evidence: Mapping[str, Scalar], *, check: str = "") -> Evidence:
    """Pair each figure with its limit and its uncertainty.

    ``limit_<what>`` and ``uncertainty_<what>`` belong to the figure ``<what>``; where ``<what>`` is a unit alone, to
    the check's own number if it is in that unit, else to the first figure that is. ``limit_origin`` is of them all.
    """
    told = {name: value for name, value in evidence.items() if value is not None and name != "simulated"}
    origin = told.pop("limit_origin", None)
    limits = {name: value for name, value in told.items() if name in _LIMITS or name.startswith(("limit_", "target_"))}
    figures = {name: value for name, value in told.items() if name not in limits}
    uncertain = {name: figures.pop(name) for name in list(figures) if name.startswith("uncertainty")}
    main = main_name(check, evidence)
    first = {main: figures[main]} if main in figures else {}
    ordered = {**first, **figures}
    of = {figure: name for name in limits for figure in _alike(_belongs_to(name, ordered), ordered)}
    spread = {_belongs_to(name, ordered): value for name, value in uncertain.items()}
    return Evidence(
        figures=[
            Measured(
                name=name,
                value=value,
                uncertainty=spread.get(name),
                limit_name=of.get(name, ""),
                limit=limits.get(of.get(name, "")),
                limit_origin=str(origin or _default_origin(of[name])) if name in of else "",
            )
            for name, value in figures.items()
        ],
        loose_limits={name: limits[name] for place, name in of.items() if not place},
    )


def main_name(check: str, evidence: Mapping[str, Scalar]) -> str:
    """The evidence that a check is about; of somebody else's check it is called ``value`` or ``value_<unit>``."""
    return MAIN.get(check) or next((name for name in evidence if name == "value" or name.startswith("value_")), "")


def unit_of(name: str) -> str:
    """The unit in the name of an evidence, in words; empty where it has none."""
    found = unit_at_end(name)
    return _WHOLE.get(name) or (found.words if found is not None else "")


def unit_at_end(name: str) -> UnitOfName | None:
    """The unit that a name ends with."""
    return next((unit for unit in UNITS if name.endswith(unit.end)), None)


def _belongs_to(name: str, figures: Mapping[str, Scalar]) -> str:
    """The figure that ``limit_…`` or ``uncertainty_…`` is of; empty where there is none."""
    rest = name.partition("_")[2]
    for exact in (rest, f"value_{rest}" if rest else "value"):
        if exact in figures:
            return exact
    unit, own = f"_{rest}" if rest else "", unit_at_end(name)
    for figure, value in figures.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if number and figure.endswith(unit) and (unit_at_end(figure) == own or not rest):
            return figure
    return ""


def _alike(figure: str, figures: Mapping[str, Scalar]) -> list[str]:
    """One limit may hold for the same figure of several phases: ``ramp_thermal_…`` and ``steady_thermal_…``."""
    what = figure.partition("_")[2]
    is_unit = any(unit.end == f"_{what}" for unit in UNITS)
    return [figure] if is_unit or not what else [name for name in figures if name.partition("_")[2] == what]


def _default_origin(limit_name: str) -> str:
    return "latency_target_us of the bench" if limit_name == "target_us" else ""
