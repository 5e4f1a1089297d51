"""All figures of one temperature over one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_thermal.analysis.coverage import Coverage, measure_coverage
from pytest_thermal.analysis.health import Health, check_health
from pytest_thermal.analysis.levels import level, peak, rise
from pytest_thermal.analysis.noise import resolution_of
from pytest_thermal.analysis.rebound import Rebound, find_rebound
from pytest_thermal.analysis.settled import (
    ALLOWED_REMAINING,
    MODE_IS_OVER,
    Settled,
    judge_baseline_settled,
    judge_settled,
)
from pytest_thermal.analysis.settling_rates import SETTLING_RATES, SettlingRate
from pytest_thermal.analysis.time_constants import TimeConstants, fit_time_constants
from pytest_thermal.analysis.trend import fit_trend
from pytest_thermal.model.phases import PhaseName
from pytest_thermal.model.said import say
from pytest_thermal.model.series import Figure, Phase, Series


@dataclass(frozen=True, kw_only=True)
class TemperatureFigures:
    """What one temperature's readings say about one run. A part is None where the run has no such phase."""

    clean: Series
    """The readings without those that ``health`` rejects; all figures are from these."""
    health: Health
    coverage: Mapping[PhaseName, Coverage]
    peak: Figure
    baseline: Figure
    steady: Figure
    rise: Figure
    baseline_settled: Settled | None
    settled: Settled | None
    heating: TimeConstants | None
    cooling: TimeConstants | None
    rebound: Rebound | None

    @property
    def slow(self) -> Figure | None:
        """The slow time constant to reckon with, or what is known of it."""
        return _slow(self.heating, self.cooling)

    def figures(self) -> tuple[Figure, ...]:
        """Every figure, for a table or a file."""
        found = [self.peak, self.baseline, self.steady, self.rise]
        for covered in self.coverage.values():
            found += [covered.coverage, covered.longest_gap]
        for judged in (self.baseline_settled, self.settled):
            found += [judged.slope, judged.remaining] if judged else []
        for fitted in (self.heating, self.cooling):
            found += [fitted.fast, fitted.slow, fitted.fast_rise, fitted.slow_rise, fitted.final] if fitted else []
        found += [self.rebound.rise] if self.rebound else []
        health = self.health
        return (*found, health.resolution, health.noise, health.longest_constant, health.spikes, health.dropouts)


def analyse_temperature(
    series: Series,
    phases: Sequence[Phase],
    *,
    power: Series | None = None,
    rate: SettlingRate = SETTLING_RATES["default"],
    heated: bool = True,
) -> TemperatureFigures:
    """Work out every figure of one temperature.

    Args:
        series: Readings of shape (n,), °C.
        phases: Of the run, each name once.
        power: Of the same device, to tell a load that came back from a rebound.
        rate: What counts as settled.
        heated: Whether the sensor should follow the load (``check_health``).

    Each figure is defined where it is computed; here they are only put together: spikes and dropouts taken out first,
    the slow constant from heating, else from cooling.
    """
    named = {phase.name: phase for phase in phases}
    series = replace(series, resolution=resolution_of(series))
    health = check_health(series, phases, heated=heated)
    clean = series.without(health.rejected) if health.rejected.any() else series
    baseline, steady, cooldown = (named.get(name) for name in ("baseline", "steady", "cooldown"))
    cold = level(clean, baseline) if baseline else _absent("baseline", series)
    hot = level(clean, steady) if steady else _absent("steady", series)
    load_on = named.get("ramp", steady)
    heating = fit_time_constants(clean, load_on.start_seconds, steady.end_seconds) if load_on and steady else None
    cooling = fit_time_constants(clean, cooldown.start_seconds, cooldown.end_seconds) if cooldown else None
    return TemperatureFigures(
        clean=clean,
        health=health,
        coverage={phase.name: measure_coverage(clean, phase) for phase in phases},
        peak=peak(series, health.rejected),
        baseline=cold,
        steady=hot,
        rise=rise(cold, hot),
        baseline_settled=judge_baseline_settled(clean, baseline, rate=rate) if baseline else None,
        settled=judge_settled(
            clean,
            steady,
            slow=_if_slowest(_slow(heating, cooling), clean, steady, load_on or steady, rate),
            rate=rate,
            loaded_since_seconds=load_on.start_seconds if load_on else None,
        )
        if steady
        else None,
        heating=heating,
        cooling=cooling,
        rebound=find_rebound(clean, cooldown, power=power) if cooldown else None,
    )


def _slow(heating: TimeConstants | None, cooling: TimeConstants | None) -> Figure | None:
    known = [fitted.slow for fitted in (heating, cooling) if fitted and fitted.slow.value is not None]
    bounded = [fitted.slow for fitted in (heating, cooling) if fitted and "at_most_seconds" in fitted.slow.detail]
    return next(iter([*known, *bounded]), None)


def _if_slowest(
    slow: Figure | None, series: Series, steady: Phase, load_on: Phase, rate: SettlingRate
) -> Figure | None:
    """The slow constant, unless the temperature rose by more than 1 °C once that mode was over.

    Then something slower is there, of which a curve of cooling, or the first quarter of one of heating, knows nothing:
    what is still to come is not told by that constant.
    """
    if slow is None or slow.value is None:
        return slow
    start = max(load_on.start_seconds + MODE_IS_OVER * slow.value, steady.start_seconds)
    part = series.between(start, steady.end_seconds)
    later = fit_trend(part.time_seconds, part.values, resolution_of(series), tau=steady.end_seconds - start)
    if later is None or later.span_seconds < rate.seconds or later.lower * later.span_seconds <= ALLOWED_REMAINING:
        return slow
    why = say("it went on rising after its slow mode of {tau:.0f} s was over", tau=slow.value)
    return Figure.missing(slow.name, slow.unit, why)


def _absent(name: str, series: Series) -> Figure:
    return Figure.missing(name, str(series.sensor.unit), say("the run has no {name} phase", name=name))
