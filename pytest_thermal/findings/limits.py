"""What is allowed: each limit with its value, its unit, and where it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pytest_thermal.analysis.coverage import LEAST_COVERAGE, MOST_GAP_TICKS
from pytest_thermal.analysis.drift import FAILS_AT
from pytest_thermal.analysis.fleet import (
    LEAST_DEVIATION,
    LEAST_PLACE_APART,
    LEAST_SETTLING_APART,
    LEAST_THROUGHPUT_APART,
)
from pytest_thermal.analysis.load_proof import LEAST_HELD
from pytest_thermal.analysis.loop_faults import WARMEST_IDLE
from pytest_thermal.analysis.own_time import LEAST_OWN_SHARE
from pytest_thermal.analysis.rebound import LEAST_RISE, LEAST_SECONDS
from pytest_thermal.analysis.settled import ALLOWED_REMAINING
from pytest_thermal.analysis.settling_rates import SETTLING_RATES, SettlingRate
from pytest_thermal.bench import Monitor
from pytest_thermal.model import Sensor
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.phases import FULL_UTILIZATION_PERCENT, IDLE_UTILIZATION_PERCENT
from pytest_thermal.model.said import say

DEFAULT = say("default")
NO_OVERRIDES: Mapping[str, tuple[float, str]] = {}
DEVICE_LIMITS = ("slowdown", "critical", "shutdown", "emergency")
"""What devices call a temperature that they should stay below; the lowest of them counts."""
MAX = "max"
"""An accelerator's highest temperature in operation; of a processor, from where its fans should run at full speed."""
UNITS = {"celsius": "°C", "percent": "%", "ratio": "", "milliseconds": "ms", "celsius/minute": "K/min"}


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit."""

    name: str
    value: float
    unit: str
    """In words, as figures have it: ``celsius``, ``percent``, ``ratio``, ``ticks`` …"""
    origin: str
    """In words: ``config.toml [thermal] alert_threshold_gpu``, ``default``, ``device (slowdown)``."""

    @property
    def text(self) -> str:
        """``40 °C (default)``."""
        unit = UNITS.get(self.unit, self.unit)
        value = f"{100 * self.value:g} %" if self.unit == "ratio" else f"{self.value:g} {unit}".strip()
        return say("{value} ({origin})", value=value, origin=self.origin)


class Limits:
    """All limits of a bench, by name; what a device reports of itself is taken into account a sensor at a time."""

    def __init__(self, limits: Mapping[str, Limit], rate: SettlingRate) -> None:
        self._limits = dict(limits)
        self.rate = rate
        """What counts as settled."""

    def __iter__(self) -> Iterator[Limit]:
        return iter(self._limits.values())

    def __len__(self) -> int:
        return len(self._limits)

    def __getitem__(self, name: str) -> Limit:
        try:
            return self._limits[name]
        except KeyError:
            raise KeyError(f"no limit {name!r}; there are: {', '.join(self._limits)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._limits

    def threshold(self, sensor: Sensor) -> Limit | None:
        """The temperature that a sensor must stay at or below: the lower of the bench's and the device's own.

        None for what is neither a processor's nor an accelerator's.
        """
        name = _by_kind(sensor)
        if name is None:
            return None
        of_bench = self[f"threshold_{name}"]
        own = {key: sensor.limits[key] for key in DEVICE_LIMITS if key in sensor.limits}
        if MAX in sensor.limits and (name == "gpu" or not own):
            own[MAX] = sensor.limits[MAX]
        if not own:
            return of_bench
        lowest = min(own, key=lambda key: own[key])
        if own[lowest] >= of_bench.value:
            return of_bench
        return Limit(
            name=of_bench.name, value=own[lowest], unit=of_bench.unit, origin=say("device ({lowest})", lowest=lowest)
        )

    def rise(self, sensor: Sensor) -> tuple[Limit, Limit] | None:
        """The least and the most that a device's temperature should rise by under full load; None as above."""
        name = _by_kind(sensor)
        return None if name is None else (self[f"rise_{name}_least"], self[f"rise_{name}_most"])


def _by_kind(sensor: Sensor) -> str | None:
    return {Kind.CPU: "cpu", Kind.ACCELERATOR: "gpu"}.get(kind_of(sensor.device))


_CHANGEABLE: tuple[tuple[str, float, str], ...] = (
    ("rise_cpu_least", 25.0, "celsius"),
    ("rise_cpu_most", 35.0, "celsius"),
    ("rise_gpu_least", 30.0, "celsius"),
    ("rise_gpu_most", 40.0, "celsius"),
    ("baseline_most", WARMEST_IDLE, "celsius"),
    ("idle_most", IDLE_UTILIZATION_PERCENT, "percent"),
    ("utilization_least", FULL_UTILIZATION_PERCENT, "percent"),
    ("own_share_least", LEAST_OWN_SHARE, "percent"),
    ("throttling_most", 0.0, "milliseconds"),
    ("pump_least", 0.5, "ratio"),
    ("drift_most", FAILS_AT, "celsius"),
    ("throughput_least", LEAST_HELD, "ratio"),
    ("consistency_least", LEAST_DEVIATION, "celsius"),
    ("consistency_place_least", LEAST_PLACE_APART, "celsius"),
    ("consistency_settling_least", LEAST_SETTLING_APART, "ratio"),
    ("consistency_throughput_least", LEAST_THROUGHPUT_APART, "ratio"),
)
_FIXED: tuple[tuple[str, float, str], ...] = (
    ("remaining_most", ALLOWED_REMAINING, "celsius"),
    ("coverage_least", LEAST_COVERAGE, "ratio"),
    ("gap_most", MOST_GAP_TICKS, "ticks"),
    ("rebound_most", LEAST_RISE, "celsius"),
    ("rebound_seconds", LEAST_SECONDS, "seconds"),
)
"""Part of a figure's definition: with another value it would be another figure."""


def limits_for(
    monitor: Monitor,
    *,
    origin: Callable[[str], str] = lambda _: DEFAULT,
    overrides: Mapping[str, tuple[float, str]] = NO_OVERRIDES,
    settling: tuple[str, str] = (DEFAULT, DEFAULT),
) -> Limits:
    """The limits of a bench.

    Args:
        monitor: Its thresholds.
        origin: Where a setting of the bench came from, by dotted name: ``Bench.origin``.
        overrides: Limit's name → its value in the limit's unit, and where that came from.
        settling: Name of a rate of ``SETTLING_RATES``, and where that came from.

    Raises:
        ValueError: There is no limit, or no rate, of that name, or it is part of a definition.
    """
    limits: dict[str, Limit] = {}
    for what in ("threshold", "critical"):
        for kind in ("cpu", "gpu"):
            setting = f"{'alert' if what == 'threshold' else what}_threshold_{kind}_celsius"
            value = getattr(monitor, setting)
            if value is not None:
                limits[f"{what}_{kind}"] = Limit(
                    name=f"{what}_{kind}", value=value, unit="celsius", origin=origin(f"monitor.{setting}")
                )
    for name, default, unit in _CHANGEABLE:
        value, where = overrides.get(name, (default, DEFAULT))
        limits[name] = Limit(name=name, value=value, unit=unit, origin=where)
    unknown = [name for name in overrides if name not in {row[0] for row in _CHANGEABLE}]
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)}: no limit that can be set here; these can: {', '.join(r[0] for r in _CHANGEABLE)}"
        )
    rate = _rate(*settling)
    limits["settling"] = Limit(
        name="settling", value=rate.per_second * 60, unit="celsius/minute", origin=_origin_of_rate(rate, settling[1])
    )
    for name, default, unit in _FIXED:
        limits[name] = Limit(name=name, value=default, unit=unit, origin=DEFAULT)
    return Limits(limits, rate)


def _rate(name: str, where: str) -> SettlingRate:
    try:
        return SETTLING_RATES[name]
    except KeyError:
        raise ValueError(f"{where}: no settling rate {name!r}; there are: {', '.join(SETTLING_RATES)}") from None


def _origin_of_rate(rate: SettlingRate, where: str) -> str:
    return DEFAULT if where == DEFAULT else f"{where}: {rate.origin}"
