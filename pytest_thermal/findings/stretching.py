"""The demo bench's loop runs many times as fast as a real one: its times as they would be for a real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_thermal.model.series import FloatArray, Phase, Series
from pytest_thermal.recording import MissingStretch, Recording, Requests, Timing


def stretch(recording: Recording, time_scale: float) -> Recording:
    """All times further apart: t becomes t₀ + (t − t₀)·scale, t₀ being the first sample's; periods likewise.

    What counts milliseconds (throttling) stays as it was counted. The requests' times and durations are stretched
    too, so that each still ends in the phase in which it ended.

    Raises:
        ValueError: The scale is not above zero.
    """
    if not time_scale > 0:
        raise ValueError(f"times can only be stretched by more than zero, not {time_scale!r}")
    start = recording.start_seconds
    if time_scale == 1 or start is None:
        return recording

    def at(seconds: float) -> float:
        return start + (seconds - start) * time_scale

    return replace(
        recording,
        series={name: _series(one, start, time_scale) for name, one in recording.series.items()},
        phases=tuple(_phase(phase, at) for phase in recording.phases),
        missing=tuple(_moved(stretch, at) for stretch in recording.missing),
        events=tuple(replace(event, time_seconds=at(event.time_seconds)) for event in recording.events),
        requests=None if recording.requests is None else _requests(recording.requests, start, time_scale),
        timing={name: _timing(one, start, time_scale) for name, one in recording.timing.items()},
    )


def _times(seconds: FloatArray, start: float, scale: float) -> FloatArray:
    return start + (seconds - start) * scale


def _series(series: Series, start: float, scale: float) -> Series:
    return replace(
        series,
        time_seconds=_times(series.time_seconds, start, scale),
        period_seconds=series.period_seconds * scale,
    )


def _phase(phase: Phase, at: Callable[[float], float]) -> Phase:
    return replace(phase, start_seconds=at(phase.start_seconds), end_seconds=at(phase.end_seconds))


def _moved(missing: MissingStretch, at: Callable[[float], float]) -> MissingStretch:
    return replace(missing, time_seconds=at(missing.time_seconds))


def _requests(requests: Requests, start: float, scale: float) -> Requests:
    return replace(
        requests,
        start_seconds=_times(requests.start_seconds, start, scale),
        ttft_seconds=requests.ttft_seconds * scale,
        latency_seconds=requests.latency_seconds * scale,
    )


def _timing(timing: Timing, start: float, scale: float) -> Timing:
    return replace(
        timing,
        time_seconds=_times(timing.time_seconds, start, scale),
        lateness_ms=timing.lateness_ms * scale,
        read_ms=timing.read_ms * scale,
        period_seconds=timing.period_seconds * scale,
    )
