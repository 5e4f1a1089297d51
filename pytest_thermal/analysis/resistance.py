"""Thermal resistance in °C/W, and what it is taken against."""

from __future__ import annotations

import math

from pytest_thermal.analysis.load_proof import LEAST_POWER_RISE
from pytest_thermal.model.said import say
from pytest_thermal.model.series import Figure

UNIT = "celsius/watt"
LEAST_WATTS = 5.0
"""Below this a quotient says more of the power meter than of the cooling."""


def resistance(
    hot: Figure,
    hot_power: Figure,
    *,
    coolant_supply: Figure | None = None,
    ambient: Figure | None = None,
    baseline: Figure | None = None,
    baseline_power: Figure | None = None,
    power_accuracy: float = 0.0,
) -> Figure:
    """Thermal resistance from a device to what cools it, in °C/W, with its standard uncertainty.

    Args:
        hot: Level of the temperature in steady (``levels.level``), °C.
        hot_power: Level of the power in steady, W.
        coolant_supply: Level of the coolant's supply temperature in steady, °C.
        ambient: Level of the room's temperature in steady, °C.
        baseline: Level of the temperature in the baseline, °C.
        baseline_power: Level of the power in the baseline, W; without a load that exceeds it there is no resistance.
        power_accuracy: Standard uncertainty of the power meter as a share, where its maker states one.

    R = (T − T_reference) ÷ P against the coolant supply, else the room. Against the baseline R = rise ÷ (P − P_idle):
    at idle the device already stood R·P_idle above what cools it. Where the idle power is not known the whole power
    is taken, ``detail["idle_power"]`` is None, and R is too low by the idle share. ``detail["reference"]`` says which.
    Source: definition of thermal resistance, JEDEC JESD51-1; uncertainty by the law of propagation, JCGM 100 (GUM).
    """
    name = "resistance"
    if hot.value is None or hot_power.value is None:
        return Figure.missing(name, UNIT, hot.reason or say("power: {reason}", reason=hot_power.reason))
    reference, against = _reference(coolant_supply, ambient, baseline)
    if reference is None or reference.value is None:
        return Figure.missing(name, UNIT, say("neither coolant supply nor ambient nor baseline is known"))
    at_rest = None if baseline_power is None else baseline_power.value
    if at_rest is not None and hot_power.value < LEAST_POWER_RISE * at_rest:
        # The warmth is then what an earlier load left, or the room's: divided by idle power it means nothing.
        return Figure.missing(
            name,
            UNIT,
            say(
                "{watts:.0f} W in steady are no load, as it draws {idle:.0f} W at idle",
                watts=hot_power.value,
                idle=at_rest,
            ),
        )
    watts, watts_variance = hot_power.value, (hot_power.uncertainty or 0.0) ** 2
    idle = None
    if against == "baseline" and baseline_power is not None and baseline_power.value is not None:
        idle = baseline_power.value
        watts -= idle
        watts_variance += (baseline_power.uncertainty or 0.0) ** 2
    if watts < LEAST_WATTS:
        return Figure.missing(name, UNIT, say("{watts:.1f} W are too few to divide by", watts=watts), reference=against)
    watts_variance += (power_accuracy * watts) ** 2
    kelvin = hot.value - reference.value
    kelvin_variance = (hot.uncertainty or 0.0) ** 2 + (reference.uncertainty or 0.0) ** 2
    value = kelvin / watts
    return Figure(
        name=name,
        value=value,
        unit=UNIT,
        uncertainty=math.sqrt(kelvin_variance + value**2 * watts_variance) / watts,
        detail={"reference": against, "kelvin": kelvin, "watts": watts, "idle_power": idle},
    )


def _reference(
    coolant_supply: Figure | None, ambient: Figure | None, baseline: Figure | None
) -> tuple[Figure | None, str]:
    for figure, name in ((coolant_supply, "coolant supply"), (ambient, "ambient"), (baseline, "baseline")):
        if figure is not None and figure.value is not None:
            return figure, name
    return None, ""
