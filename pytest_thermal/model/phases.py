"""The phases of a thermal run, and what idle and loaded mean in them.

Imports nothing, so that a plan can be made where there is no numpy.
"""

from __future__ import annotations

from typing import Literal

PhaseName = Literal["baseline", "ramp", "steady", "limit", "cooldown"]

PHASES: tuple[PhaseName, ...] = ("baseline", "ramp", "steady", "limit", "cooldown")
"""In the order in which a run goes through them; ``limit`` is optional."""
LOADED_PHASES: tuple[str, ...] = ("ramp", "steady", "limit")
"""Those in which the load is on."""

IDLE_UTILIZATION_PERCENT = 10.0
"""Above this a device is not idle."""
FULL_UTILIZATION_PERCENT = 90.0
"""Below this a device is not loaded in full."""
