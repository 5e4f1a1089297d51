"""Numbers as a person reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_thermal.analysis import LoopFaultKind, ThrottleKind
from pytest_thermal.model.said import in_english, joined, say
from pytest_thermal.model.series import Figure

FAULTS: Mapping[LoopFaultKind, str] = {
    LoopFaultKind.PUMP_STOPPED: say("pump stopped"),
    LoopFaultKind.FLOW_LOW: say("flow low"),
    LoopFaultKind.AIR: say("air in the loop"),
    LoopFaultKind.CONTACT: say("contact or paste"),
    LoopFaultKind.RADIATOR: say("radiator or fan"),
    LoopFaultKind.SUPPLY_WARM: say("supply too warm"),
    LoopFaultKind.SENSOR_STUCK: say("sensor stuck"),
}
THROTTLES: Mapping[ThrottleKind, str] = {
    ThrottleKind.POWER: say("power"),
    ThrottleKind.EITHER: say("thermal or power"),
}
STATES: Mapping[str, str] = {
    "finished": say("finished"),
    "recording": say("recording"),
    "cut off": say("cut off"),
    "foreign": say("foreign"),
    "prepared": say("prepared"),
}
"""What became of a recording."""
LONGEST = 240
"""Characters of what was seen; what checks say is written to stay below 200 of them."""


def degrees(figure: Figure) -> str:
    """``47.2 ± 0.2 °C``: a temperature or a difference of two, with one standard uncertainty where it is known."""
    if figure.value is None:
        return say("unknown")
    if figure.uncertainty is None:
        return f"{figure.value:.1f} °C"
    return f"{figure.value:.1f} ± {max(figure.uncertainty, 0.05):.1f} °C"


def span(seconds: float) -> str:
    """``45 s``, ``12 min``, ``2.5 h``."""
    if abs(seconds) < 90:
        return f"{seconds:.0f} s" if abs(seconds) >= 10 or seconds == round(seconds) else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if abs(seconds) < 5400 else f"{seconds / 3600:.1f} h"


def few(names: Sequence[str], most: int = 6) -> str:
    """``a, b and 3 more``."""
    told = joined(", ", names[:most])
    return say("{names} and {count} more", names=told, count=len(names) - most) if len(names) > most else told


def milliseconds(value: float) -> str:
    """``340 ms``, ``12.3 s``, ``4 min``."""
    return f"{value:.0f} ms" if value < 10_000 else span(value / 1000)


def shortened(text: str, most: int = LONGEST) -> str:
    """Cut at a word where it is too long; in another language it is told in full."""
    if len(text) <= most:
        return text
    cut = f"{text[: most - 2].rsplit(' ', 1)[0]} …"
    return in_english(text, cut)
