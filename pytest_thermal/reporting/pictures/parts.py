"""What several pictures have in common: the colour of a device, its curves, its ribbons, its requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from pytest_thermal.analysis import ThrottleKind
from pytest_thermal.findings import Judgement
from pytest_thermal.findings.subjects import in_order, is_heated, main_temperature
from pytest_thermal.findings.telling import span
from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.series import Phase, Series
from pytest_thermal.recording import Recording
from pytest_thermal.reporting.pictures.scene import Band, BandKind, Bars, Curve, Limit, Ribbon, RibbonKind
from pytest_thermal.reporting.pictures.stretches import Spans, drawn, joined
from pytest_thermal.reporting.run_page.spans import Span, gaps, throttled
from pytest_thermal.reporting.run_page.traffic import CANCELLED

BUCKETS = 120
"""Bars of requests across a picture, at most,"""
BUCKET_SECONDS = 1.0
"""and how long each of them is at least."""
MOST_RIBBONS = 4
_REASONS: Mapping[RibbonKind, tuple[ThrottleKind, ...]] = {
    "heat": (ThrottleKind.THERMAL, ThrottleKind.EITHER),
    "power": (ThrottleKind.POWER,),
}


class View:
    """A judged recording as pictures see it: which devices it has, and their colours."""

    def __init__(self, judgement: Judgement) -> None:
        self.judgement = judgement
        self.recording: Recording = judgement.recording
        self.sensors: tuple[Sensor, ...] = in_order(one.sensor for one in self.recording.series.values())
        self.phases = {str(phase.name): phase for phase in self.recording.phases}
        heated = [sensor.device for sensor in self.sensors if is_heated(sensor)]
        self._places = {device: place for place, device in enumerate(dict.fromkeys(heated))}

    @property
    def simulated(self) -> bool:
        """Whether the bench was the demo bench."""
        return self.judgement.simulated

    @cached_property
    def gaps(self) -> Mapping[str, Spans]:
        """By sensor, when it has no reading."""
        return {
            one.sensor_id: tuple((span.start_seconds, span.end_seconds) for span in one.spans)
            for one in gaps(self.recording)
        }

    @cached_property
    def throttled(self) -> Mapping[str, Mapping[ThrottleKind, tuple[Span, ...]]]:
        """By device and kind of reason, when it slowed itself down."""
        return throttled(self.recording)

    @property
    def devices(self) -> tuple[str, ...]:
        """Those whose heat is judged."""
        return tuple(self._places)

    def series(self, name: str) -> Series | None:
        """A sensor's readings, where it has some."""
        found = self.recording.series.get(name)
        return found if found is not None and found.present.any() else None

    def main(self, device: str) -> Series | None:
        """The temperature that stands for a device."""
        sensor = main_temperature(device, self.sensors)
        return None if sensor is None else self.series(sensor.id)

    def place(self, device: str) -> int:
        """Colour and stroke of a device; what is no heated device has those after them."""
        return self._places.get(device, len(self._places))

    def figure(self, sensor: str, name: str, *, last: bool = False) -> float | None:
        """Value of a figure of a temperature; the last of that name where two phases have one each."""
        found = [one.value for one in self.judgement.figures().get(sensor, ()) if one.name == name]
        return (found[-1] if last else found[0]) if found else None

    def detail(self, sensor: str, name: str, key: str, *, last: bool = False) -> float | None:
        """A number that a figure was worked out with."""
        found = [one.detail.get(key) for one in self.judgement.figures().get(sensor, ()) if one.name == name]
        value = (found[-1] if last else found[0]) if found else None
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def curve(view: View, series: Series, start: float, end: float, *, label: str = "", thin: bool = False) -> Curve:
    """A sensor's readings in the colour of its device."""
    times, values = drawn(series, start, end)
    sensor = series.sensor
    return Curve(
        label=label or plain_name(sensor),
        time_seconds=times,
        values=values,
        place=view.place(sensor.device),
        thin=thin,
    )


def plain_name(sensor: Sensor) -> str:
    """``gpu0 memory``: an id without its quantity and unit."""
    known = ("temperature", "power", "utilization", "clock", "speed", "flow")
    words = sensor.id.removesuffix(f"_{sensor.unit}").split(".")
    if words[-1] in known:
        words = words[:-1]
    return " ".join(words) or sensor.id


def temperatures(view: View, start: float, end: float, devices: Iterable[str] | None = None) -> list[Curve]:
    """The heated temperatures, each device's own one thick and its parts thin; single cores are left out."""
    found = []
    wanted = set(view.devices if devices is None else devices)
    for sensor in view.sensors:
        series = view.series(sensor.id)
        if not is_heated(sensor) or sensor.device not in wanted or series is None:
            continue
        main = main_temperature(sensor.device, view.sensors)
        if main is None or main.id == sensor.id:
            found.append(curve(view, series, start, end, label=sensor.device if main else ""))
        elif not _is_many(sensor, view.sensors):
            found.append(curve(view, series, start, end, thin=True))
    return found


def _is_many(sensor: Sensor, sensors: Sequence[Sensor]) -> bool:
    """One of so many parts of its device that their curves hide each other."""
    return sum(1 for other in sensors if other.device == sensor.device and other.unit is Unit.CELSIUS) > 3


def thresholds(view: View, devices: Iterable[str] | None = None) -> tuple[Limit, ...]:
    """The temperatures that devices must stay at or below, those that are alike as one."""
    wanted = set(view.devices if devices is None else devices)
    found: dict[float, dict[str, list[str]]] = {}
    for sensor in view.sensors:
        limit = view.judgement.limits.threshold(sensor) if is_heated(sensor) and sensor.device in wanted else None
        if limit is not None:
            devices_of = found.setdefault(limit.value, {}).setdefault(limit.text, [])
            if sensor.device not in devices_of:
                devices_of.append(sensor.device)
    return tuple(
        Limit(
            value=value, label=f"{'; '.join(f'{named(devices)} at most {text}' for text, devices in by_text.items())}"
        )
        for value, by_text in sorted(found.items())
    )


def named(devices: Sequence[str]) -> str:
    """``gpu0 … gpu7``: few by name, many by the first and the last."""
    return ", ".join(devices) if len(devices) <= 3 else f"{devices[0]} … {devices[-1]}"


def ribbons(view: View, start: float, end: float, devices: Iterable[str] | None = None) -> tuple[Ribbon, ...]:
    """When devices slowed themselves down, heat before power; many devices as one, else they would hide the curves."""
    found: list[Ribbon] = []
    for kind, reasons in _REASONS.items():
        own: list[Ribbon] = []
        for device in view.devices if devices is None else devices:
            by_reason = view.throttled.get(device, {})
            spans = [(span.start_seconds, span.end_seconds) for reason in reasons for span in by_reason.get(reason, ())]
            spans = list(joined(spans, start, end))
            if spans:
                own.append(Ribbon(label=device, kind=kind, spans=tuple(spans)))
        if len(own) > MOST_RIBBONS:
            every = joined([span for ribbon in own for span in ribbon.spans], start, end)
            own = [Ribbon(label=f"{len(own)} devices", kind=kind, spans=every)]
        found += own
    return tuple(found)


def bands(spans: Spans, kind: BandKind) -> tuple[Band, ...]:
    """Stretches as bands."""
    return tuple(Band(start_seconds=start, end_seconds=end, kind=kind) for start, end in spans)


def missing(view: View, series: Sequence[Series], start: float, end: float) -> tuple[Band, ...]:
    """Where at least one of these has no reading; what lies outside the recording is not missing."""
    found = [span for one in series for span in view.gaps.get(one.sensor.id, ())]
    return bands(joined(found, start, end), "missing")


def request_bars(view: View, start: float, end: float) -> Bars | None:
    """Requests that ended in each stretch; those that the load's end cut off count for nothing.

    Per second as they went out, also where the picture's clock is that of a loop which is slower than the demo bench's.
    """
    requests = view.recording.requests
    if requests is None or not len(requests) or end <= start:
        return None
    ended = requests.start_seconds + np.nan_to_num(requests.latency_seconds)
    good = ~requests.error.where(bool)
    failed = ~good & ~requests.error.where(lambda error: error.startswith(CANCELLED))
    lasted = (end - start) / view.judgement.time_scale
    count = int(min(max(lasted / BUCKET_SECONDS, 1), BUCKETS))
    edges, width = np.linspace(start, end, count + 1, dtype=np.float64), lasted / count
    answered, _ = np.histogram(ended[good], edges)
    bad, _ = np.histogram(ended[failed], edges)
    if not answered.any() and not bad.any():
        return None
    return Bars(edge_seconds=edges, answered_per_second=answered / width, failed_per_second=bad / width)


def around(phase: Phase, share: float = 0.04) -> tuple[float, float]:
    """A phase and a little of what lies on either side."""
    room = share * phase.duration_seconds
    return phase.start_seconds - room, phase.end_seconds + room


def outside(phase: Phase, start: float, end: float) -> tuple[Band, ...]:
    """What is shown and is no part of the phase."""
    return bands(((start, phase.start_seconds), (phase.end_seconds, end)), "outside")


def note_simulated(view: View) -> str:
    """What every caption of a simulated run ends with."""
    if not view.simulated:
        return ""
    scale = view.judgement.time_scale
    stretched = f"; times are those of a real loop, {scale:g} times as long" if scale != 1 else ""
    return f" Simulated: the demo bench, no real machine{stretched}."


def lasting(phase: Phase) -> str:
    """``steady, 9 min``."""
    return f"{phase.name}, {span(phase.duration_seconds)}"
