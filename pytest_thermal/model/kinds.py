"""What kind of thing a device is, told from its name: limits and plausibility differ by it."""

from __future__ import annotations

import re
from enum import Enum

from pytest_thermal.model.readings import Sensor, Unit


class Kind(str, Enum):
    """What a device is."""

    CPU = "cpu"
    ACCELERATOR = "accelerator"
    """Whatever its maker calls it: GPU limits hold for every one."""
    OTHER = "other"

    def __str__(self) -> str:
        return self.value


_ACCELERATOR = re.compile(r"(gpu|npu|mlu|dcu|hcu|xpu|gcu|hpu|ppu|amdgpu|radeon|nouveau|xe|i915)(?=[\d_.]|$)")
_CPU = re.compile(r"cpu\d*$")


def kind_of(device: str) -> Kind:
    """The kind of ``device``, the first word of a sensor's id: ``cpu0``, ``gpu3``, ``npu1``, ``nvme0``."""
    if _CPU.match(device):
        return Kind.CPU
    return Kind.ACCELERATOR if _ACCELERATOR.match(device) else Kind.OTHER


LEAK_WARNING, LEAK_ALARM = 1.0, 2.0
"""What a leak detector shows (``Unit.STATE``) besides 0; as Redfish's DetectorState: OK, Warning, Critical."""
_PUMP = re.compile(r"(?:^|[._])pump\d*(?:[._]|$)")
_LEAK = re.compile(r"(?:^|[._])leak\d*(?:[._]|$)")


def is_pump(sensor: Sensor) -> bool:
    """Whether it is the speed of a pump, in rpm."""
    return sensor.unit is Unit.RPM and is_part_of_pump(sensor)


def is_part_of_pump(sensor: Sensor) -> bool:
    """Whether it is something of a pump."""
    return _PUMP.search(sensor.id) is not None


def is_leak_detector(sensor: Sensor) -> bool:
    """Whether it says if there is a leak."""
    return sensor.unit is Unit.STATE and _LEAK.search(sensor.id) is not None
