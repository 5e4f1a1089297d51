"""A phase at a glance: temperatures with their limits, what heated, what was asked of the gateway."""

from __future__ import annotations

from pytest_thermal.findings.devices import power_of, utilization_of
from pytest_thermal.reporting.pictures.parts import (
    View,
    around,
    curve,
    lasting,
    missing,
    note_simulated,
    outside,
    request_bars,
    ribbons,
    temperatures,
    thresholds,
)
from pytest_thermal.reporting.pictures.scene import Panel, Scene


def phase_scene(view: View, name: str) -> Scene | None:
    """The picture of a phase; None where the run has no such phase, or nothing was measured in it."""
    phase = view.phases.get(name)
    if phase is None or phase.duration_seconds <= 0:
        return None
    start, end = around(phase)
    off = outside(phase, start, end)
    curves = temperatures(view, start, end)
    heated = [series for device in view.devices if (series := view.main(device)) is not None]
    gaps = missing(view, heated, start, end)
    slowed = ribbons(view, start, end)
    panels = []
    if curves:
        panels.append(
            Panel(
                unit="°C",
                height=3.0,
                curves=tuple(curves),
                limits=thresholds(view),
                bands=(*off, *gaps),
                ribbons=slowed,
            )
        )
    panels += [panel for panel in (_power(view, start, end), _requests(view, start, end)) if panel is not None]
    if not panels:
        return None
    said = [f"Temperatures in {lasting(phase)}"]
    if any(panel.unit in ("W", "%") for panel in panels):
        said.append("what the devices draw" if any(panel.unit == "W" for panel in panels) else "how busy they are")
    if any(panel.bars is not None for panel in panels):
        said.append("inference requests beneath")
    caption = ", ".join(said) + "."
    if slowed:
        caption += " Along the upper edge: devices that slowed themselves down."
    if gaps:
        caption += " Hatched: readings are missing."
    return Scene(
        panels=tuple(panels),
        start_seconds=start,
        end_seconds=end,
        origin_seconds=phase.start_seconds,
        origin=f"{name} began",
        caption=caption + note_simulated(view),
        simulated=view.simulated,
    )


def _power(view: View, start: float, end: float) -> Panel | None:
    """What the devices draw; how busy they are where nobody measures that."""
    for unit, found in (("W", power_of), ("%", utilization_of)):
        series = [one for device in view.devices if (one := found(device, view.recording.series)) is not None]
        if series:
            curves = tuple(curve(view, one, start, end, label=one.sensor.device) for one in series)
            return Panel(unit=unit, from_zero=True, curves=curves)
    return None


def _requests(view: View, start: float, end: float) -> Panel | None:
    bars = request_bars(view, start, end)
    return None if bars is None else Panel(unit="requests/s", height=0.8, from_zero=True, bars=bars)
