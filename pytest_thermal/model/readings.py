"""What a sensor is, and what reading it gave: a value, or the reason there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Unit(str, Enum):
    """The unit of a sensor's values; also the last word of its id."""

    CELSIUS = "celsius"
    WATTS = "watts"
    RPM = "rpm"
    PERCENT = "percent"
    MEGAHERTZ = "megahertz"
    VOLTS = "volts"
    AMPERES = "amperes"
    LITERS_PER_MINUTE = "liters_per_minute"
    PASCALS = "pascals"
    MILLISECONDS = "milliseconds"
    """Time spent in a state since some moment in the past: a counter that only grows."""
    BYTES = "bytes"
    COUNT = "count"
    BITS = "bits"
    """A register of flags; no number to average."""
    STATE = "state"
    """What a detector says: 0 all is well, 1 a warning, 2 an alarm."""
    KELVIN_MARGIN = "kelvin_margin"
    """Kelvin left to the device's own limit: falls as it gets hotter. Never a temperature."""

    def __str__(self) -> str:
        return self.value


class Missing(str, Enum):
    """Why there is no value."""

    TIMEOUT = "timeout"
    """The tool or driver did not answer by its deadline."""
    ABSENT = "absent"
    """The device was there when sensors were discovered, and is not in this answer."""
    UNREADABLE = "unreadable"
    """It is there, and reading it failed or is not allowed."""
    NOT_OFFERED = "not offered"
    """The device is fine and says that it does not measure this, or not now."""
    DEVICE_ERROR = "device error"
    """The device, or the tool for all its devices, reports a fault."""
    IMPLAUSIBLE = "implausible"
    """A number arrived that cannot be true; the detail has it."""
    STUCK = "stuck"
    """A number arrived that has stood still for too long to be a measurement."""
    STALE = "stale"
    """A number arrived that was measured too long ago to be one of now."""
    NOT_UNDERSTOOD = "not understood"
    """An answer arrived that does not have the expected form."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """One measured quantity of one part of one device."""

    id: str
    """``gpu0.memory.temperature_celsius``: device, part if it is not the device itself, quantity with its unit."""
    unit: Unit
    device: str
    """``gpu0``: what the device's own tool calls it."""
    identity: str
    """What stays with the device over reboots and other cards' faults: UUID, bus id, label. Never its position."""
    source: str
    label: str = ""
    """What the tool or driver calls this quantity."""
    limits: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Limits the device itself reports, in the sensor's unit: ``{"slowdown": 90.0, "shutdown": 95.0}``.

    ``slowdown``, ``shutdown``, ``max``, ``critical`` and ``emergency`` as devices name them; ``cap`` is a power limit
    in force; of memory, ``max`` is its size; of a clock, ``max`` and ``base``.
    """


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What asking one sensor once gave: exactly one of ``value`` and ``missing``."""

    sensor_id: str
    value: float | None = None
    """A finite number in the sensor's unit."""
    missing: Missing | None = None
    detail: str = ""
    """For a missing one: what was seen, in the tool's words or as the raw value."""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.missing is None):
            raise ValueError(f"{self.sensor_id}: a reading is either a value or missing, not both and not neither")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.sensor_id}: {self.value} is no value; a reading without a number is missing")
