"""Whether a sensor can be believed: stuck, dropping out, spiking, and how finely it reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.noise import LOOKED_AT, noise_sigma, resolution_of
from pytest_thermal.analysis.numerics import runs_of
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import BoolArray, Figure, FloatArray, Phase, Series

LEAST_JUMP = 12.0
"""°C within one reading and back: more than a cooled device under a steady load does in a few seconds."""
SIGMAS = 8.0
STEPS = 4.0
USUAL_JUMPS = 3.0
"""A jump must exceed this times what 98 % of the sensor's readings stay within: idle processors do jump."""
MOST_READINGS = 3
"""A spike or dropout of up to so many readings is an error of reading; what lasts longer is told as it is."""
RETURNS_WITHIN = 0.5
"""Of a jump: how near to where it came from a reading must return."""
STUCK_SECONDS = 60.0
STUCK_TICKS = 10
STUCK_READINGS = 20
LIVELY = 2.0
"""A sensor whose readings usually differ by so many steps gives the same one twice in a row in a fifth of the cases at
most: never twenty times by chance."""


@dataclass(frozen=True, kw_only=True)
class Health:
    """How far one sensor can be believed."""

    resolution: Figure
    """Smallest step, in the sensor's unit."""
    noise: Figure
    """From one reading to the next, one sigma, in the sensor's unit."""
    stuck: Answer
    longest_constant: Figure
    """The longest time without any change, in seconds; ``detail`` has its start and value."""
    spikes: Figure
    """How many times the sensor jumped up and back."""
    dropouts: Figure
    """How many times it jumped down and back, or fell to 0."""
    rejected: BoolArray
    """Readings in spikes and dropouts, shape (n,): for ``Series.without`` and ``levels.peak``."""
    reason: str
    """What is wrong, in words; empty where nothing is."""


def check_health(series: Series, phases: Sequence[Phase] = (), *, heated: bool = True) -> Health:
    """Look at a sensor's readings for what no device does.

    Args:
        series: Any sensor; spikes and dropouts are looked for in temperatures only, as power and clocks do jump.
        phases: Of the run, in order; their load changes tell a stuck sensor from a steady one.
        heated: Whether the sensor should follow the load; not so for a room or a coolant supply.

    Spike, dropout: up to three readings that stand at least J above (below) both readings around them, which agree
    within J/2; J is the most of 12 °C, 8 σ of the noise, 4 steps, and 3 times the jumps that are usual for this
    sensor. A fall to exactly 0 is a dropout however long it lasts.

    Stuck is YES when exactly the same reading is given for a minute (and ten ticks) beyond a change of load, or for a
    minute and twenty readings by a sensor whose neighbouring readings usually differ by two steps or more. UNKNOWN
    when it never changes and no phase says that it should have.
    """
    times, values = series.readings()
    unit = str(series.sensor.unit)
    step = resolution_of(series)
    noise = noise_sigma(values)
    steps = np.diff(values)
    rejected = np.zeros(len(series), dtype=np.bool_)
    spikes = dropouts = 0
    if series.sensor.unit is Unit.CELSIUS and values.size > 2:
        up, down = _spikes_and_dropouts(values, steps, _jump(steps, noise, step))
        if up.any() or down.any():
            rejected[series.present] = up | down
            spikes, dropouts = runs_of(up)[0].size, runs_of(down)[0].size
    stuck, constant, why = _stuck(
        times,
        values,
        steps,
        [phase for phase in phases if heated and phase.name in {"ramp", "cooldown"}],
        max(STUCK_SECONDS, STUCK_TICKS * series.period_seconds),
        lively=step is not None and _usual_change(_but_for_longest_standstill(steps)) >= LIVELY * step,
    )
    found = [say("1 spike") if spikes == 1 else say("{spikes} spikes", spikes=spikes)] if spikes else []
    if dropouts:
        found.append(say("1 dropout") if dropouts == 1 else say("{dropouts} dropouts", dropouts=dropouts))
    found += [why] if why else []
    return Health(
        resolution=Figure(name="resolution", value=step, unit=unit, reason="" if step else say("no step is seen")),
        noise=Figure(name="noise", value=noise, unit=unit),
        stuck=stuck,
        longest_constant=constant,
        spikes=Figure(name="spikes", value=float(spikes), unit="count"),
        dropouts=Figure(name="dropouts", value=float(dropouts), unit="count"),
        rejected=rejected,
        reason=joined("; ", found),
    )


def _jump(steps: FloatArray, noise: float, step: float | None) -> float:
    some = np.abs(steps[:: max(steps.size // LOOKED_AT, 1)])
    usual = float(np.quantile(some, 0.98))
    return max(LEAST_JUMP, SIGMAS * noise, STEPS * (step or 0.0), USUAL_JUMPS * usual)


def _spikes_and_dropouts(values: FloatArray, steps: FloatArray, threshold: float) -> tuple[BoolArray, BoolArray]:
    """Which of the readings, shape (n,), are which; what lies between two failed reads is no spike."""
    failed = _zeros(values, threshold)
    if not failed.any():
        return _excursions(values, steps, threshold)
    others = values[~failed]
    up, down = np.zeros_like(failed), failed.copy()
    up[~failed], down[~failed] = _excursions(others, np.diff(others), threshold)
    return up, down


def _excursions(values: FloatArray, steps: FloatArray, threshold: float) -> tuple[BoolArray, BoolArray]:
    """Readings, shape (n,), that stand ``threshold`` above, or below, both of the good readings around them."""
    up, down = np.zeros(values.size, dtype=np.bool_), np.zeros(values.size, dtype=np.bool_)
    starts = np.flatnonzero(np.abs(steps) >= threshold) + 1
    for width in range(1, MOST_READINGS + 1):
        first = starts[starts + width < values.size]
        if first.size == 0:
            break
        before, after = values[first - 1], values[first + width]
        inside = first[:, None] + np.arange(width)
        above = values[inside] - np.maximum(before, after)[:, None]
        below = np.minimum(before, after)[:, None] - values[inside]
        isolated = (np.abs(before - after) <= RETURNS_WITHIN * threshold) & (np.maximum(above, below) >= threshold).all(
            axis=1
        )
        up[inside[isolated][above[isolated] > 0]] = True
        down[inside[isolated][below[isolated] > 0]] = True
    return up, down


def _zeros(values: FloatArray, threshold: float) -> BoolArray:
    """Readings of exactly 0, shape (n,), in a sensor that otherwise stands at least ``threshold`` above it."""
    zero = values == 0
    if not zero.any() or zero.all():
        return np.zeros(values.size, dtype=np.bool_)
    return zero if float(np.quantile(values[~zero], 0.05)) >= threshold else np.zeros(values.size, dtype=np.bool_)


def _stuck(
    times: FloatArray, values: FloatArray, steps: FloatArray, phases: Sequence[Phase], least: float, *, lively: bool
) -> tuple[Answer, Figure, str]:
    """``phases`` are those whose start must show in the readings."""
    if times.size < 2:
        return (
            Answer.UNKNOWN,
            Figure.missing("longest_constant", "seconds", say("{size} readings", size=times.size)),
            "",
        )
    first, last = runs_of(steps == 0)
    lasted = times[last] - times[first] if first.size else np.zeros(1)
    longest = int(np.argmax(lasted))
    start = int(first[longest]) if first.size else 0
    constant = Figure(
        name="longest_constant",
        value=float(lasted[longest]),
        unit="seconds",
        detail={"start_seconds": float(times[start]), "reading": float(values[start])},
    )
    for phase in phases:
        beyond, reading = _beyond_start(phase, times, values, steps)
        if beyond >= least:
            what = say("the load went on") if phase.name == "ramp" else say("the load was taken off")
            return (
                Answer.YES,
                constant,
                say("stood at {reading:g} for {beyond:.0f} s after {what}", reading=reading, beyond=beyond, what=what),
            )
    if lasted[longest] < least:
        return Answer.NO, constant, ""
    said = say("at {values:g} for {lasted:.0f} s", values=values[start], lasted=lasted[longest])
    if lively and last[longest] - first[longest] + 1 >= STUCK_READINGS:
        return Answer.YES, constant, say("stood {said} although it moves all the time otherwise", said=said)
    if not phases and last[longest] - first[longest] == steps.size:
        return Answer.UNKNOWN, constant, say("never moved, {said}", said=said)
    return Answer.NO, constant, ""


def _but_for_longest_standstill(steps: FloatArray) -> FloatArray:
    """Changes from reading to reading but for the longest run of none: what is stuck says nothing of what is usual."""
    first, last = runs_of(steps == 0)
    if not first.size:
        return steps
    longest = int(np.argmax(last - first))
    return np.concatenate((steps[: first[longest]], steps[last[longest] :]))


def _usual_change(steps: FloatArray) -> float:
    """Median size of the change from one reading to the next."""
    some = np.abs(steps[:: max(steps.size // LOOKED_AT, 1)])
    return float(np.median(some)) if some.size else 0.0


def _beyond_start(phase: Phase, times: FloatArray, values: FloatArray, steps: FloatArray) -> tuple[float, float]:
    """For how long into a phase, in seconds, the last reading from before it went on, and that reading."""
    at = int(np.searchsorted(times, phase.start_seconds)) - 1
    if at < 0:
        return 0.0, math.nan
    changes = steps[at:] != 0
    end = at + (int(np.argmax(changes)) if changes.any() else changes.size)
    return float(times[end]) - phase.start_seconds, float(values[at])
