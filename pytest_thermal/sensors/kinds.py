"""What kind of thing a device is, told from its name: limits and plausibility differ by it."""

from __future__ import annotations

import re
from enum import Enum


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
