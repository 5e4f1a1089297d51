"""The piece of the curve that proves a finding: what it says, drawn where it was seen, against the limit it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pytest_thermal.findings.devices import power_of, utilization_of
from pytest_thermal.model import Finding, Unit
from pytest_thermal.model.phases import LOADED_PHASES
from pytest_thermal.model.series import Phase, Series
from pytest_thermal.recording import Recording
from pytest_thermal.reporting.pictures.parts import (
    View,
    around,
    bands,
    curve,
    missing,
    note_simulated,
    outside,
    plain_name,
    request_bars,
    ribbons,
    temperatures,
)
from pytest_thermal.reporting.pictures.scene import Arrow, Band, Level, Limit, Mark, Panel, Scene

AXIS: Mapping[Unit, str] = {
    Unit.CELSIUS: "°C", Unit.WATTS: "W", Unit.RPM: "rpm", Unit.PERCENT: "%", Unit.MEGAHERTZ: "MHz", Unit.VOLTS: "V",
    Unit.AMPERES: "A", Unit.LITERS_PER_MINUTE: "l/min", Unit.PASCALS: "Pa", Unit.MILLISECONDS: "ms",
    Unit.BYTES: "bytes", Unit.KELVIN_MARGIN: "K", Unit.COUNT: "", Unit.BITS: "", Unit.STATE: "",
}  # fmt: skip
"""Units as they are written at an axis."""
BESIDE_SETTLED = 2.0
"""Times the window that the slope is taken from: enough of the curve to see whether it bends."""


def finding_scene(view: View, finding: Finding) -> Scene | None:
    """The picture that belongs to a finding; None where there is nothing to draw."""
    build = _BUILDERS.get(finding.check, _plain)
    scene = build(view, finding)
    if scene is None:
        return None
    return replace(scene, caption=scene.caption + note_simulated(view), simulated=view.simulated)


# ------------------------------------------------------------------------------------------------------ temperatures


def _threshold(view: View, finding: Finding) -> Scene | None:
    series = view.series(finding.subject)
    limit = None if series is None else view.judgement.limits.threshold(series.sensor)
    if series is None or limit is None:
        return _plain(view, finding)
    at, top = view.detail(finding.subject, "peak", "time_seconds"), view.figure(finding.subject, "peak")
    phase = next((one for one in view.recording.phases if at is not None and _holds(one, at)), None)
    start, end = around(phase) if phase is not None else _whole(view)
    marks = () if at is None or top is None else (Mark(time_seconds=at, value=top, label=f"{top:.1f} °C"),)
    line = Limit(value=limit.value, label=f"at most {limit.text}")
    panel = Panel(
        unit="°C",
        curves=(curve(view, series, start, end),),
        limits=(line,),
        over=line,
        marks=marks,
        bands=(*(outside(phase, start, end) if phase else ()), *missing(view, [series], start, end)),
        ribbons=ribbons(view, start, end, [series.sensor.device]),
    )
    where = f"{phase.name}, in which it was warmest" if phase is not None else "the run"
    caption = f"{plain_name(series.sensor)} in {where}, against its limit of {limit.text}."
    return _scene(view, panel, start, end, phase=phase, caption=caption)


def _rise(view: View, finding: Finding) -> Scene | None:
    name = finding.subject
    series = view.series(name)
    cold, hot = view.figure(name, "baseline"), view.figure(name, "steady")
    baseline, steady = view.phases.get("baseline"), view.phases.get("steady")
    if series is None or cold is None or hot is None or baseline is None or steady is None:
        return _plain(view, finding)
    start, end = baseline.start_seconds, steady.end_seconds + 0.08 * (steady.end_seconds - baseline.start_seconds)
    windows = [_window(view, name, "baseline", baseline), _window(view, name, "steady", steady)]
    levels = [
        Level(start_seconds=low, end_seconds=high, start_value=value, end_value=value)
        for (low, high), value in zip(windows, (cold, hot), strict=True)
    ]
    levels.append(Level(start_seconds=windows[0][1], end_seconds=end, start_value=cold, end_value=cold, dotted=True))
    allowed = view.judgement.limits.rise(series.sensor)
    lines: tuple[Limit, ...] = ()
    caption = f"{plain_name(series.sensor)} from its baseline of {cold:.1f} °C to {hot:.1f} °C in steady"
    if allowed is not None:
        most = allowed[1]
        lines = (Limit(value=cold + most.value, label=f"{most.value:g} °C above the baseline"),)
        caption += f"; at most {most.text} above it"
    panel = Panel(
        unit="°C",
        curves=(curve(view, series, start, end),),
        limits=lines,
        bands=(*bands(tuple(windows), "window"), *missing(view, [series], start, steady.end_seconds)),
        levels=tuple(levels),
        arrows=(
            Arrow(
                time_seconds=steady.end_seconds + (end - steady.end_seconds) / 3,
                start_value=cold,
                end_value=hot,
                label=f"{hot - cold:+.1f} °C",
            ),
        ),
        ribbons=ribbons(view, start, end, [series.sensor.device]),
    )
    caption += ". Shaded: the stretches that the two levels are means of."
    return _scene(view, panel, start, end, phase=baseline, caption=caption)


def _settled(view: View, finding: Finding) -> Scene | None:
    name, steady = finding.subject, view.phases.get("steady")
    series, slope = view.series(name), view.figure(name, "slope", last=True)
    length = view.detail(name, "slope", "window_seconds", last=True)
    if series is None or steady is None or slope is None or length is None:
        return _phase_of(view, finding, "steady")
    begin = steady.end_seconds - length
    start = max(steady.start_seconds, steady.end_seconds - BESIDE_SETTLED * length)
    end = steady.end_seconds
    _, values = series.between(begin, steady.end_seconds).readings()
    if values.size == 0:
        return _phase_of(view, finding, "steady")
    middle, half = float(values.mean()), slope / 60 * length / 2
    limit = view.judgement.limits["settling"]
    allowed = limit.value / 60 * length
    first = middle - half
    levels = [
        Level(
            start_seconds=begin,
            end_seconds=steady.end_seconds,
            start_value=first,
            end_value=middle + half,
            label=f"{slope:+.3f} K/min",
        )
    ]
    levels += [
        Level(
            start_seconds=begin,
            end_seconds=steady.end_seconds,
            start_value=first,
            end_value=first + sign * allowed,
            dotted=True,
        )
        for sign in (1, -1)
    ]
    panel = Panel(
        unit="°C",
        curves=(curve(view, series, start, end),),
        bands=(
            *bands(((begin, steady.end_seconds),), "window"),
            *missing(view, [series], start, end),
        ),
        levels=tuple(levels),
    )
    caption = (
        f"The end of steady of {plain_name(series.sensor)}. Line: its slope over the shaded window; "
        f"dotted: the most that is allowed, {limit.value:.3g} K/min ({limit.origin})."
    )
    return _scene(view, panel, start, end, phase=steady, caption=caption)


def _rebound(view: View, finding: Finding) -> Scene | None:
    name, cooldown = finding.subject, view.phases.get("cooldown")
    series = view.series(name)
    if series is None or cooldown is None:
        return _plain(view, finding)
    start, end = around(cooldown)
    limit = view.judgement.limits["rebound_most"]
    times, values = series.during(cooldown).readings()
    since = view.detail(name, "rebound", "start_seconds")
    lasted = view.detail(name, "rebound", "lasted_seconds") or 0.0
    levels: tuple[Level, ...] = ()
    windows: tuple[Band, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    if since is not None and values.size:
        before = values[times <= since]
        least = float(before.min()) if before.size else float(values.min())
        risen = view.figure(name, "rebound") or 0.0
        windows = bands(((since, since + lasted),), "window")
        levels = (
            Level(start_seconds=start, end_seconds=end, start_value=least, end_value=least, dotted=True),
            Level(
                start_seconds=since,
                end_seconds=end,
                start_value=least + limit.value,
                end_value=least + limit.value,
                dotted=True,
                label=f"{limit.value:g} °C above it",
            ),
        )
        middle = since + lasted / 2
        arrows = (Arrow(time_seconds=middle, start_value=least, end_value=least + risen, label=f"{risen:+.1f} °C"),)
    panel = Panel(
        unit="°C",
        curves=(curve(view, series, start, end),),
        bands=(*outside(cooldown, start, end), *windows, *missing(view, [series], start, end)),
        levels=levels,
        arrows=arrows,
    )
    back = "Shaded: where it came back up. " if windows else ""
    caption = (
        f"{plain_name(series.sensor)} in cooldown. {back}"
        f"At most {limit.text} above its lowest so far, for {view.judgement.limits['rebound_seconds'].value:g} s."
    )
    return _scene(view, panel, start, end, phase=cooldown, caption=caption)


def _baseline(view: View, finding: Finding) -> Scene | None:
    name, phase = finding.subject, view.phases.get("baseline")
    series, cold = view.series(name), view.figure(name, "baseline")
    if series is None or phase is None:
        return _plain(view, finding)
    start, end = around(phase)
    window = _window(view, name, "baseline", phase)
    limit = view.judgement.limits["baseline_most"]
    near = cold is not None and cold > limit.value - 10  # else the line would press the curve flat
    levels: tuple[Level, ...] = ()
    if cold is not None:
        levels = (
            Level(
                start_seconds=window[0], end_seconds=window[1], start_value=cold, end_value=cold, label=f"{cold:.1f} °C"
            ),
        )
    panel = Panel(
        unit="°C",
        curves=(curve(view, series, start, end),),
        limits=(Limit(value=limit.value, label=f"at most {limit.text}"),) if near else (),
        bands=(
            *outside(phase, start, end),
            *bands((window,), "window"),
            *missing(view, [series], start, end),
        ),
        levels=levels,
    )
    busy = _busy(view, series.sensor.device, start, end)
    caption = f"{plain_name(series.sensor)} before the load came on; at most {limit.text} at idle."
    return _scene(view, panel, start, end, phase=phase, caption=caption, below=busy)


def _coverage(view: View, finding: Finding) -> Scene | None:
    series = view.recording.series.get(finding.subject)
    if series is None:
        return None
    start, end = _whole(view)
    gaps = missing(view, [series], start, end)
    least, most = view.judgement.limits["coverage_least"], view.judgement.limits["gap_most"]
    caption = (
        f"{plain_name(series.sensor)} over the run; at least {least.text} of its readings, no gap over {most.text}."
    )
    if gaps:
        caption += " Hatched: no reading."
    panel = Panel(unit=AXIS[series.sensor.unit], curves=(curve(view, series, start, end),), bands=gaps)
    return _scene(view, panel, start, end, phase=None, caption=caption)


def _drift(view: View, finding: Finding) -> Scene | None:
    scene = _rise(view, finding)
    earlier = finding.evidence.get("earlier")
    cold = view.figure(finding.subject, "baseline")
    if scene is None or not scene.panels[0].arrows or not isinstance(earlier, (int, float)) or cold is None:
        return scene
    against = finding.evidence.get("against")
    if finding.evidence.get("by") != "rise":
        return replace(scene, caption=f"{scene.caption} Compared with {against} by its {finding.evidence.get('by')}.")
    panel = scene.panels[0]
    line = Limit(value=cold + earlier, label=f"{earlier:+.1f} °C, as in {against}")
    return replace(scene, panels=(replace(panel, limits=(line,)), *scene.panels[1:]))


# ----------------------------------------------------------------------------------------- devices, the loop, requests


def _load(view: View, finding: Finding) -> Scene | None:
    steady = view.phases.get("steady")
    if steady is None:
        return None
    start, end = around(steady)
    limit = view.judgement.limits["utilization_least"]
    busy = _busy(view, finding.subject, start, end, limit=Limit(value=limit.value, label=f"at least {limit.text}"))
    draws = power_of(finding.subject, view.recording.series)
    panels = []
    if busy is not None:
        panels.append(replace(busy, height=1.0, bands=(*outside(steady, start, end), *busy.bands)))
    if draws is not None:
        panels.append(
            Panel(
                unit="W",
                from_zero=True,
                curves=(curve(view, draws, start, end, label=f"{finding.subject} power"),),
                bands=(*outside(steady, start, end), *missing(view, [draws], start, end)),
            )
        )
    if not panels:
        return None
    caption = f"How busy {finding.subject} was in steady, and what it drew; utilisation at least {limit.text}."
    return _scene(
        view, panels[0], start, end, phase=steady, caption=caption, below=panels[1] if len(panels) > 1 else None
    )


def _throttling(view: View, finding: Finding) -> Scene | None:
    span = _loaded(view)
    main = view.main(finding.subject)
    if span is None or main is None:
        return None
    start, end = span
    slowed = ribbons(view, start, end, [finding.subject])
    limit = view.judgement.limits.threshold(main.sensor)
    panel = Panel(
        unit="°C",
        height=2.0,
        curves=tuple(temperatures(view, start, end, [finding.subject])),
        limits=(Limit(value=limit.value, label=f"at most {limit.text}"),) if limit is not None else (),
        bands=missing(view, [main], start, end),
        ribbons=slowed,
    )
    clock = view.series(f"{finding.subject}.clock_megahertz")
    below = None
    if clock is not None:
        below = Panel(
            unit="MHz", from_zero=True, curves=(curve(view, clock, start, end, label=f"{finding.subject} clock"),)
        )
    caption = f"{finding.subject} under load"
    caption += ": along the upper edge, when it slowed itself down." if slowed else ": it never slowed itself down."
    if clock is not None:
        caption += " Beneath: its clock."
    most = view.judgement.limits["throttling_most"]
    caption += f" By heat, at most {most.text}."
    return _scene(
        view,
        panel,
        start,
        end,
        phase=view.phases.get("ramp") or view.phases.get("steady"),
        caption=caption,
        below=below,
    )


def _pump(view: View, finding: Finding) -> Scene | None:
    series = view.series(finding.subject)
    if series is None:
        return None
    start, end = _whole(view)
    usual = finding.evidence.get("usual_rpm")
    limit = view.judgement.limits["pump_least"]
    lines: tuple[Limit, ...] = ()
    if isinstance(usual, (int, float)) and usual > 0:
        lines = (Limit(value=limit.value * usual, label=f"at least {limit.text} of {usual:.0f} rpm"),)
    panel = Panel(
        unit="rpm",
        from_zero=True,
        curves=(curve(view, series, start, end),),
        limits=lines,
        bands=missing(view, [series], start, end),
    )
    below = Panel(unit="°C", curves=tuple(one for one in temperatures(view, start, end) if not one.thin))
    caption = f"{plain_name(series.sensor)} over the run; at least {limit.text} of its usual speed under load."
    caption += " Beneath: the temperatures that it has to hold." if below.curves else ""
    return _scene(view, panel, start, end, phase=None, caption=caption, below=below if below.curves else None)


def _throughput(view: View, finding: Finding) -> Scene | None:  # noqa: ARG001 - one shape for all
    steady = view.phases.get("steady")
    if steady is None:
        return None
    start, end = around(steady)
    bars = request_bars(view, start, end)
    if bars is None:
        return None
    least = view.judgement.limits["throughput_least"]
    panel = Panel(unit="requests/s", from_zero=True, bars=bars, bands=outside(steady, start, end))
    hot = [one for one in temperatures(view, start, end) if not one.thin]
    below = Panel(unit="°C", curves=tuple(hot), ribbons=ribbons(view, start, end)) if hot else None
    caption = f"Requests answered and failed in steady; at the end at least {least.text} of the start."
    return _scene(view, panel, start, end, phase=steady, caption=caption, below=below)


def _plain(view: View, finding: Finding) -> Scene | None:
    """A sensor's whole curve, or a device's temperature: what there is where nothing more is known."""
    series = view.series(finding.subject) or view.main(finding.subject)
    if series is None:
        return None
    start, end = _whole(view)
    panel = Panel(
        unit=AXIS[series.sensor.unit],
        curves=(curve(view, series, start, end),),
        bands=missing(view, [series], start, end),
    )
    return _scene(view, panel, start, end, phase=None, caption=f"{plain_name(series.sensor)} over the run.")


def _phase_of(view: View, finding: Finding, name: str) -> Scene | None:
    series, phase = view.series(finding.subject), view.phases.get(name)
    if series is None or phase is None:
        return _plain(view, finding)
    start, end = around(phase)
    panel = Panel(
        unit=AXIS[series.sensor.unit],
        curves=(curve(view, series, start, end),),
        bands=(*outside(phase, start, end), *missing(view, [series], start, end)),
    )
    return _scene(view, panel, start, end, phase=phase, caption=f"{plain_name(series.sensor)} in {name}.")


# ---------------------------------------------------------------------------------------------------------------------


def _scene(
    view: View,
    panel: Panel,
    start: float,
    end: float,
    *,
    phase: Phase | None,
    caption: str,
    below: Panel | None = None,
) -> Scene:
    first = _whole(view)[0]
    return Scene(
        panels=(panel,) if below is None else (replace(panel, height=2.0), below),
        start_seconds=start,
        end_seconds=end,
        origin_seconds=phase.start_seconds if phase is not None else first,
        origin=f"{phase.name} began" if phase is not None else "the recording began",
        caption=caption,
    )


def _busy(view: View, device: str, start: float, end: float, *, limit: Limit | None = None) -> Panel | None:
    series: Series | None = utilization_of(device, view.recording.series)
    if series is None:
        return None
    lines = (limit,) if limit is not None else ()
    return Panel(
        unit="%",
        from_zero=True,
        height=0.7,
        curves=(curve(view, series, start, end, label=f"{device} utilisation"),),
        limits=lines,
        bands=missing(view, [series], start, end),
    )


def _window(view: View, name: str, figure: str, phase: Phase) -> tuple[float, float]:
    """The stretch that a level is the mean of."""
    start, end = (view.detail(name, figure, key) for key in ("start_seconds", "end_seconds"))
    return (phase.start_seconds if start is None else start), (phase.end_seconds if end is None else end)


def _whole(view: View) -> tuple[float, float]:
    recording: Recording = view.recording
    start, end = recording.start_seconds or 0.0, recording.end_seconds or 1.0
    return start, (end if end > start else start + 1.0)


def _loaded(view: View) -> tuple[float, float] | None:
    phases = [phase for phase in view.recording.phases if phase.name in LOADED_PHASES]
    if not phases:
        return None
    return min(phase.start_seconds for phase in phases), max(phase.end_seconds for phase in phases)


def _holds(phase: Phase, seconds: float) -> bool:
    return phase.start_seconds <= seconds < phase.end_seconds and bool(np.isfinite(seconds))


_BUILDERS: Mapping[str, Callable[[View, Finding], Scene | None]] = {
    "threshold": _threshold,
    "rise": _rise,
    "settled": _settled,
    "rebound": _rebound,
    "baseline": _baseline,
    "coverage": _coverage,
    "drift": _drift,
    "load": _load,
    "throttling": _throttling,
    "pump": _pump,
    "throughput": _throughput,
}
