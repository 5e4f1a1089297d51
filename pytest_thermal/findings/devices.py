"""Which series tell of one device: how busy it is, what it draws, why it slows itself down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pytest_thermal.findings.subjects import THROTTLE_BITS, is_throttle
from pytest_thermal.model import Unit
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.series import Series

EVENT_REASONS: Mapping[str, int] = {
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}
"""Bits of NVIDIA's register of reasons for a lower clock: what NVML calls clocks event reasons."""


def utilization_of(device: str, series: Mapping[str, Series]) -> Series | None:
    """How busy a device is, percent; of a processor, else of all of them together."""
    names = [f"{device}.utilization_percent"]
    if kind_of(device) is Kind.CPU:
        names.append("cpu.utilization_percent")
    return _first(names, series)


def power_of(device: str, series: Mapping[str, Series]) -> Series | None:
    """What a device draws, watts."""
    names = [f"{device}.power_watts", f"{device}.package.power_watts", f"{device}.instant.power_watts"]
    return _first(names, series)


def throttle_reasons(device: str, series: Mapping[str, Series]) -> dict[str, Series]:
    """By reason, a counter of milliseconds or a flag, as ``analysis.measure_throttling`` takes them.

    A register of flags is taken apart, and flags of single reasons are taken, only where the device has no counters.
    """
    own = [one for one in series.values() if one.sensor.device == device and is_throttle(one.sensor)]
    counters = {
        one.sensor.id.removeprefix(f"{device}.throttle.").removesuffix("_milliseconds"): one
        for one in own
        if one.sensor.unit is Unit.MILLISECONDS
    }
    if any(one.present.any() for one in counters.values()):
        return counters
    register = next((one for one in own if one.sensor.id == f"{device}.{THROTTLE_BITS}"), None)
    if register is not None:
        return {reason: _flag(register, mask) for reason, mask in EVENT_REASONS.items()}
    flags = {
        one.sensor.id.removeprefix(f"{device}.throttle.").removesuffix("_bits"): one
        for one in own
        if one.sensor.unit is Unit.BITS
    }
    return {**counters, **flags}


def _flag(register: Series, mask: int) -> Series:
    there = register.present
    bits = np.where(there, register.values, 0.0).astype(np.int64)
    sensor = replace(register.sensor, unit=Unit.COUNT)
    return replace(register, sensor=sensor, values=np.where(there, (bits & mask) != 0, np.nan))


def _first(names: list[str], series: Mapping[str, Series]) -> Series | None:
    return next((series[name] for name in names if name in series and series[name].present.any()), None)
