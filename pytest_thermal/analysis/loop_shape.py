"""What the shape of a run's curve says of the parts of a cooling loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.levels import level, rise
from pytest_thermal.analysis.noise import UNIFORM_SIGMA, block_means, noise_sigma, resolution_of
from pytest_thermal.analysis.time_constants import TimeConstants
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure, FloatArray, Phase, Series

PROMPT_SECONDS, PROMPT_TICKS = 15.0, 3.0
"""What a temperature loses so soon after the load goes off, it had across die and paste."""
PLATE_SECONDS = 75.0
"""What it loses between then and this, it had mostly across the cold plate; the coolant itself takes minutes."""
BLOCK_SECONDS = 10.0
STEP_SECONDS = (120.0, 300.0, 600.0)
"""Over which a rise in steady is looked for: a pump's or a contact's first, then a fan's."""
LEAST_COURSE = 12
"""Means of 10 s before a departure, from which its course is known."""
LEAST_SWINGS = 4
"""Periods that a swing has to be seen for."""
REGULAR = 0.7
"""Autocorrelation at a whole period, of what is called regular."""
ABRUPT = 2.0
"""From one 10 s mean to the next, mean squares over those of a sine: square waves have more than twice as much."""
SLOWEST_ROUND_SECONDS = 90.0
"""Coolant goes round a loop in less."""
UNREST = 0.2
"""Of a departure: a temperature that wanders so much beforehand was on no course."""
STAYS, COMES_BACK = 0.5, 0.05
"""A departure falls below the first share of what it had reached in no more than the second share of the time after."""


@dataclass(frozen=True, kw_only=True)
class LoopShape:
    """The curve of one heated device, in parts. Comparable between runs of the same load; per watt where known."""

    baseline: Figure
    rise: Figure
    watts: Figure
    """Power under load minus idle power."""
    prompt: Figure
    """°C lost in the first 15 s (three readings) after the load went off; else gained after it went on."""
    plate: Figure
    """°C lost (gained) from then to 75 s."""
    lasting: Figure
    """Rise − prompt − plate, °C: mostly what the coolant itself was warmer by."""
    fast_seconds: Figure
    slow_seconds: Figure
    wander: Figure
    """Standard deviation of 10 s means about a smooth curve in the second half of steady, noise taken off, °C."""

    def per_watt(self, figure: Figure) -> float | None:
        """A figure of this shape in °C/W, or None where either is missing."""
        if figure.value is None or not self.watts.value:
            return None
        return figure.value / self.watts.value


@dataclass(frozen=True, kw_only=True)
class Departure:
    """A temperature that left its steady course for good."""

    start_seconds: float
    """Unix time, to about 10 s."""
    rise: float
    """°C above the course it was on, at the highest 10 s mean within ten minutes."""
    at_once: float
    """°C from one ten seconds (two readings) to the next, where that is most: nearly all of ``rise`` for a step."""
    first_rate: float
    """K/s over the first minute, above its course."""


@dataclass(frozen=True, kw_only=True)
class Swing:
    """A temperature that goes up and down regularly."""

    period_seconds: float
    amplitude: float
    """°C above and below its mean, as of a sine of that power."""


def measure_shape(
    temperature: Series,
    phases: Sequence[Phase],
    *,
    power: Series | None = None,
    constants: TimeConstants | None = None,
) -> LoopShape:
    """Take a run's curve apart.

    Args:
        temperature: Of the heated device, °C, spikes taken out.
        phases: Of the run; without baseline and steady there is no shape.
        power: Of the same device, W.
        constants: From ``fit_time_constants`` of the heating curve, else of the cooling curve.

    The temperature across a resistance follows the power as fast as what lies before it can store heat: die, paste
    and cold plate in seconds, the coolant in minutes. This is the structure function's reasoning (Székely and Van
    Bien, Solid-State Electronics 31 (1988); JEDEC JESD51-14) with three steps.
    """
    named = {phase.name: phase for phase in phases}
    missing = [name for name in ("baseline", "steady") if name not in named]
    if missing:
        why = say("the run has no {names}", names=joined(" and no ", missing))
        none = Figure.missing("shape", "celsius", why)
        seconds = Figure.missing("shape", "seconds", why)
        return LoopShape(
            baseline=none, rise=none, watts=none, prompt=none, plate=none, lasting=none,
            fast_seconds=seconds, slow_seconds=seconds, wander=none,
        )  # fmt: skip
    cold, hot = level(temperature, named["baseline"]), level(temperature, named["steady"])
    risen = rise(cold, hot)
    prompt, plate = _early(temperature, named.get("cooldown"), named.get("ramp", named["steady"]))
    if risen.value is None or prompt.value is None or plate.value is None:
        lasting = Figure.missing("lasting", "celsius", risen.reason or prompt.reason)
    else:
        sigma = math.hypot(risen.uncertainty or 0.0, prompt.uncertainty or 0.0)
        left = risen.value - prompt.value - plate.value
        lasting = Figure(name="lasting", value=left, unit="celsius", uncertainty=sigma)
    unknown = Figure.missing("time_constant", "seconds", say("not fitted"))
    return LoopShape(
        baseline=cold,
        rise=risen,
        watts=_watts(power, named["baseline"], named["steady"]),
        prompt=prompt,
        plate=plate,
        lasting=lasting,
        fast_seconds=constants.fast if constants else unknown,
        slow_seconds=constants.slow if constants else unknown,
        wander=_wander(temperature, named["steady"]),
    )


def find_departure(temperature: Series, steady: Phase, *, least: float = 5.0) -> Departure | None:
    """A rise of at least ``least`` °C that begins in steady and stays, or None.

    After a step of load a passive loop's temperature rises ever more slowly: its increments over two (five,
    ten) minutes never grow. Where one is ``least`` greater than the smallest before it, the loop itself has changed;
    it is measured against the line through the two minutes before, and counts when it never falls back by half. On
    10 s means.
    """
    times, means = _blocks(temperature, steady)
    if times.size < 2:
        return None
    for seconds in STEP_SECONDS:
        ahead = max(round(seconds / _typical_step(times)), 1)
        if times.size < 2 * ahead + 2:
            return None
        increments = means[ahead:] - means[:-ahead]
        growth = increments[1:] - np.maximum(np.minimum.accumulate(increments), 0.0)[:-1]
        grown = np.flatnonzero(growth >= least)
        if grown.size:
            return _measured(temperature, times, means, int(grown[0]) + 1, least)
    return None


def _measured(temperature: Series, times: FloatArray, means: FloatArray, at: int, least: float) -> Departure | None:
    """The departure after block ``at``, before which all was on course."""
    course = slice(max(at - round(STEP_SECONDS[0] / _typical_step(times)), 0), at + 1)
    middle = float(times[course].mean())
    offsets = times[course] - middle
    slope = float(np.sum(offsets * means[course]) / max(float(np.sum(offsets**2)), 1e-9)) if offsets.size > 5 else 0.0
    # A course that is followed for ten minutes may be bent: only its level is then taken further.
    reach = np.clip(times - middle, None, STEP_SECONDS[0])
    above = means - float(means[course].mean()) - max(slope, 0.0) * reach
    before = slice(max(at - round(STEP_SECONDS[-1] / _typical_step(times)), 0), at + 1)
    if at < LEAST_COURSE or _about_parabola(times[before], means[before]) > UNREST * least:
        return None
    near = max(0.15 * least, 3 * float((means[course] - means[course].mean() - slope * offsets).std()))
    on_course = np.flatnonzero(above[at:] <= near)
    before_top = on_course[on_course <= int(np.argmax(above[at:] >= least))]
    start = at + int(before_top[-1]) if before_top.size else at
    soon = above[start:][times[start:] <= times[start] + STEP_SECONDS[-1]]
    rise = float(soon.max())
    later = above[times > times[start] + STEP_SECONDS[0]]
    if rise < least or later.size == 0 or float(np.mean(later < STAYS * np.maximum.accumulate(later))) > COMES_BACK:
        return None
    since = times - times[start]
    return Departure(
        start_seconds=float(times[start]),
        rise=rise,
        at_once=_steepest(temperature, float(times[start])),
        first_rate=float(np.interp(60.0, since, above)) / 60.0,
    )


def _steepest(series: Series, start: float) -> float:
    """Greatest difference of the means of two neighbouring stretches of 10 s (two readings) about a time."""
    width = max(round(BLOCK_SECONDS / series.period_seconds), 2)
    lead = width * series.period_seconds
    _, values = series.between(start - 2 * lead - BLOCK_SECONDS, start + 6 * lead + BLOCK_SECONDS).readings()
    if values.size < 2 * width:
        return 0.0
    total = np.cumsum(np.concatenate(([0.0], values)))
    means = (total[width:] - total[:-width]) / width
    return float((means[width:] - means[:-width]).max())


def block_level(series: Series, start_seconds: float, end_seconds: float) -> float | None:
    """Median of the readings in a stretch, or None without any."""
    _, values = series.between(start_seconds, end_seconds).readings()
    return float(np.median(values)) if values.size else None


def wander_of_means(series: Series, phase: Phase) -> float | None:
    """Standard deviation of 10 s means about a parabola through the second half of a phase, in the sensor's unit."""
    half = Phase(
        name=phase.name, start_seconds=(phase.start_seconds + phase.end_seconds) / 2, end_seconds=phase.end_seconds
    )
    times, means = _blocks(series, half)
    return _about_parabola(times, means) if times.size >= 12 else None


def find_swing(series: Series, phase: Phase) -> Swing | None:
    """A regular swing in the second half of a phase, as of a fan's or a pump's control that hunts; None without one.

    By the autocorrelation of 10 s means about a parabola: it falls below zero within half a period and comes back at a
    whole one. And it is smooth, as a sine is. Air passes abruptly, and at random or each time that the loop has gone
    round.
    """
    half = Phase(
        name=phase.name, start_seconds=(phase.start_seconds + phase.end_seconds) / 2, end_seconds=phase.end_seconds
    )
    times, means = _blocks(series, half)
    if times.size < LEAST_SWINGS * 6:
        return None
    x = (times - times[0]) / (times[-1] - times[0]) - 0.5
    rest = means - np.polynomial.Polynomial.fit(x, means, 2)(x)
    power = float(np.mean(rest**2))
    lags = np.arange(1, times.size // LEAST_SWINGS)
    if power <= 0 or not lags.size:
        return None
    alike = np.array([float(np.mean(rest[lag:] * rest[:-lag])) for lag in lags]) / power
    against = np.flatnonzero(alike < -REGULAR / 2)
    if not against.size:
        return None
    after = int(against[0])
    best = after + int(np.argmax(alike[after:]))
    period = float(lags[best]) * _typical_step(times)
    if alike[best] < REGULAR or period < SLOWEST_ROUND_SECONDS:
        return None
    if 1 - alike[0] > ABRUPT * (1 - math.cos(2 * math.pi / float(lags[best]))):
        return None
    return Swing(period_seconds=period, amplitude=math.sqrt(2 * power))


def _about_parabola(times: FloatArray, means: FloatArray) -> float:
    """Standard deviation about the best parabola, 0 for fewer than six means; shapes (m,)."""
    if times.size < 6:
        return 0.0
    x = (times - times[0]) / (times[-1] - times[0]) - 0.5
    columns = np.stack([np.ones_like(x), x, x**2], axis=1)
    solved = np.linalg.solve(np.einsum("ti,tj->ij", columns, columns), np.einsum("ti,t->i", columns, means))
    return float((means - np.einsum("ti,i->t", columns, solved)).std(ddof=3))


def _wander(temperature: Series, steady: Phase) -> Figure:
    seen = wander_of_means(temperature, steady)
    if seen is None:
        return Figure.missing("wander", "celsius", say("steady has too few readings"))
    per_block = max(round(BLOCK_SECONDS / temperature.period_seconds), 1)
    noise = noise_sigma(temperature.during(steady).values) / math.sqrt(per_block)
    step = (resolution_of(temperature) or 0.0) * UNIFORM_SIGMA
    return Figure(
        name="wander",
        value=math.sqrt(max(seen**2 - noise**2 - step**2, 0.0)),
        unit="celsius",
        detail={"seen": seen, "noise": noise, "resolution": step},
    )


def _blocks(series: Series, phase: Phase) -> tuple[FloatArray, FloatArray]:
    times, values = series.during(phase).readings()
    per_block = max(round(BLOCK_SECONDS / series.period_seconds), 1)
    if values.size < per_block:
        return np.empty(0), np.empty(0)
    return block_means(times, values, values.size // per_block)


def _typical_step(times: FloatArray) -> float:
    return float(np.median(np.diff(times)))


def _watts(power: Series | None, baseline: Phase, steady: Phase) -> Figure:
    if power is None:
        return Figure.missing("watts", "watts", say("power is not measured"))
    idle, loaded = level(power, baseline), level(power, steady)
    if idle.value is None or loaded.value is None:
        return Figure.missing("watts", "watts", idle.reason or loaded.reason)
    if loaded.value - idle.value < 5.0:
        return Figure.missing(
            "watts", "watts", say("the load raised the power by {loaded:.1f} W only", loaded=loaded.value - idle.value)
        )
    return Figure(
        name="watts",
        value=loaded.value - idle.value,
        unit="watts",
        uncertainty=math.hypot(idle.uncertainty or 0.0, loaded.uncertainty or 0.0),
    )


def _early(temperature: Series, cooldown: Phase | None, heating: Phase) -> tuple[Figure, Figure]:
    """What goes at once, and what goes with the cold plate."""
    for phase in (cooldown, heating):
        if phase is None:
            continue
        moved = _moved(temperature, phase.start_seconds, phase.end_seconds)
        if moved is None:
            continue
        sigma = math.hypot(
            noise_sigma(temperature.during(phase).values) / 2, (resolution_of(temperature) or 0.0) * UNIFORM_SIGMA
        )
        first, second = (
            Figure(name=name, value=value, unit="celsius", uncertainty=sigma, detail={"phase": phase.name})
            for name, value in zip(("prompt", "plate"), moved, strict=True)
        )
        return first, second
    why = say("too few readings around the change of load")
    return Figure.missing("prompt", "celsius", why), Figure.missing("plate", "celsius", why)


def _mean(series: Series, start_seconds: float, end_seconds: float) -> float | None:
    _, values = series.between(start_seconds, end_seconds).readings()
    return float(values.mean()) if values.size else None


def _moved(series: Series, at: float, end: float) -> tuple[float, float] | None:
    """By how much the readings moved in the first seconds from where they began to move, and after those, °C."""
    period = series.period_seconds
    before = _mean(series, at - max(30.0, 5 * period), at)
    times, values = series.between(at, min(end, at + max(120.0, 20 * period))).readings()
    if before is None or times.size < 5:
        return None
    gone = np.abs(values - before) > max(2.0, 4 * noise_sigma(values), 1.01 * (resolution_of(series) or 0.0))
    first = int(np.argmax(gone)) if gone.any() else 0
    onset = float(times[max(first - 1, 0)])
    wide = max(3.0, period)
    wait = max(PROMPT_SECONDS, PROMPT_TICKS * period)
    prompt = _mean(series, onset + wait - wide, onset + wait + wide + 1e-3)
    plate = _mean(series, onset + wait + 60.0 - wide, onset + wait + 60.0 + wide + 1e-3)
    if prompt is None or plate is None or onset + wait + 60.0 > end:
        return None
    return abs(prompt - before), abs(plate - before) - abs(prompt - before)
