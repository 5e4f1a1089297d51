"""One sensor over time, the phases of a run, and figures with their uncertainty.

Kept out of ``pytest_thermal.model`` itself because it needs numpy, which a machine that only runs the access gate
need not have: ``from pytest_thermal.model.series import Series``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.phases import PhaseName
from pytest_thermal.model.readings import Sensor

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.intp]


def _frozen(values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.flags.writeable:
        array = array.view()  # shares the memory; only this view refuses to be written through
        array.flags.writeable = False
    return array


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """Readings of one sensor over time. The arrays are read-only and may be shared between series of one source.

    Raises:
        ValueError: Shapes differ, times are not finite and strictly increasing, a value is infinite, or the period
            or the resolution is not above zero.
    """

    sensor: Sensor
    time_seconds: FloatArray
    """Unix time, strictly increasing, shape (n,)."""
    values: FloatArray
    """In the sensor's unit, shape (n,); NaN where the reading is missing."""
    period_seconds: float
    """The nominal time between two readings."""
    resolution: float | None = None
    """The smallest step the source can show, in the sensor's unit, where the source says it; None: estimate it."""

    def __post_init__(self) -> None:
        time, values = _frozen(self.time_seconds), _frozen(self.values)
        name = self.sensor.id
        if time.ndim != 1 or time.shape != values.shape:
            raise ValueError(f"{name}: {time.shape} times for {values.shape} values; both must be (n,)")
        if not np.isfinite(time).all() or (time.size > 1 and not (time[1:] > time[:-1]).all()):
            raise ValueError(f"{name}: times must be finite and strictly increasing")
        if np.isinf(values).any():
            raise ValueError(f"{name}: a missing reading is NaN, never infinite")
        if not (math.isfinite(self.period_seconds) and self.period_seconds > 0):
            raise ValueError(f"{name}: the period must be above zero, not {self.period_seconds!r} s")
        if self.resolution is not None and not (math.isfinite(self.resolution) and self.resolution > 0):
            raise ValueError(f"{name}: the resolution must be above zero or None, not {self.resolution!r}")
        object.__setattr__(self, "time_seconds", time)
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return int(self.time_seconds.size)

    @property
    def present(self) -> BoolArray:
        """True where there is a reading, shape (n,)."""
        return ~np.isnan(self.values)

    def readings(self) -> tuple[FloatArray, FloatArray]:
        """Times and values of the readings that are there, shape (m,) each, m ≤ n; not copied when all are."""
        missing = np.isnan(self.values)
        if not missing.any():
            return self.time_seconds, self.values
        return self.time_seconds[~missing], self.values[~missing]

    def between(self, start_seconds: float, end_seconds: float) -> Series:
        """The readings with start ≤ time < end: each reading belongs to one of two phases that touch."""
        low, high = np.searchsorted(self.time_seconds, (start_seconds, end_seconds), side="left")
        part = object.__new__(Series)  # a part of what was checked need not be checked again
        for name, value in (
            ("sensor", self.sensor),
            ("time_seconds", self.time_seconds[low:high]),
            ("values", self.values[low:high]),
            ("period_seconds", self.period_seconds),
            ("resolution", self.resolution),
        ):
            object.__setattr__(part, name, value)
        return part

    def during(self, phase: Phase) -> Series:
        """The readings of one phase."""
        return self.between(phase.start_seconds, phase.end_seconds)

    def without(self, rejected: BoolArray) -> Series:
        """The same series with the readings at ``rejected`` (shape (n,)) missing."""
        return replace(self, values=np.where(rejected, np.nan, self.values))


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of a run, from its start up to but not including its end, in unix seconds."""

    name: PhaseName
    start_seconds: float
    end_seconds: float

    def __post_init__(self) -> None:
        if not self.start_seconds <= self.end_seconds:
            raise ValueError(f"phase {self.name} ends before it starts")

    @property
    def duration_seconds(self) -> float:
        """How long it lasted."""
        return self.end_seconds - self.start_seconds


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number that was worked out, with its uncertainty; or None with the reason why it could not be had.

    Raises:
        ValueError: The value is not finite, or None without a reason, or the uncertainty is below zero.
    """

    name: str
    value: float | None
    unit: str
    """In words: ``celsius``, ``celsius/minute``, ``celsius/watt``, ``seconds``, ``milliseconds``, ``ratio`` …"""
    uncertainty: float | None = None
    """One standard uncertainty (one sigma) in the same unit; None where none can be stated."""
    reason: str = ""
    """Why there is no value, in words for a person."""
    detail: Mapping[str, Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.value is None:
            if not self.reason:
                raise ValueError(f"{self.name}: no value and no reason why")
        elif not math.isfinite(self.value):
            raise ValueError(f"{self.name}: {self.value!r} is not a figure; say None and why")
        if self.uncertainty is not None and not (math.isfinite(self.uncertainty) and self.uncertainty >= 0):
            raise ValueError(f"{self.name}: an uncertainty is finite and not below zero, not {self.uncertainty!r}")

    @classmethod
    def missing(cls, name: str, unit: str, reason: str, **detail: Scalar) -> Figure:
        """A figure that could not be had, and why."""
        return cls(name=name, value=None, unit=unit, reason=reason, detail=detail)
