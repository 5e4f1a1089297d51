"""Whether the load really ran: utilisation, a power plateau, and inference throughput."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.noise import block_means
from pytest_thermal.analysis.own_time import LEAST_OWN_SHARE
from pytest_thermal.analysis.windows import level_window
from pytest_thermal.model.phases import FULL_UTILIZATION_PERCENT, IDLE_UTILIZATION_PERCENT
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure, FloatArray, Phase, Series

PLATEAU = 0.85
"""A power this share of the way from idle to the plateau still counts as on it."""
LEAST_ON_PLATEAU = 0.95
LEAST_POWER_RISE = 1.3
"""A load that does not raise the power by this factor is none."""
SMOOTHED_SECONDS = 30.0
"""Work comes in pieces; a dip shorter than this is the pause between two."""
HELD_SHARE = 1 / 5
LEAST_HELD = 0.9
LEAST_REQUESTS = 10


@dataclass(frozen=True, kw_only=True)
class LoadProof:
    """What shows that the load ran in full, or that it did not."""

    proven: Answer
    """NO: it did not run in full. UNKNOWN: nothing was measured that could show it. Findings are then inconclusive."""
    utilization: Figure
    """Mean over the phase, percent."""
    power: Figure
    """Median over the phase, watts."""
    on_plateau: Figure
    """Share of the phase in which the power stood on its plateau."""
    throughput: Figure
    """As in ``throughput_held``."""
    reason: str
    own: Figure | None = None
    """As in ``own_share``; None where it says nothing of this device."""
    is_starved: bool = False
    """Whether the loads had too little of their cores' time."""


def prove_load(
    phase: Phase,
    *,
    utilization: Series | None = None,
    power: Series | None = None,
    baseline: Phase | None = None,
    throughput: Figure | None = None,
    least_utilization: float = FULL_UTILIZATION_PERCENT,
    own: Figure | None = None,
    least_own: float = LEAST_OWN_SHARE,
) -> LoadProof:
    """Whether a device was loaded in full throughout a phase.

    Args:
        phase: Usually steady.
        utilization: Of the device, percent.
        power: Of the device, watts.
        baseline: When it was idle, to compare the power with.
        throughput: From ``throughput_held``, where the load is inference.
        least_utilization: Percent.
        own: From ``own_share``, of a processor: what is busy may be busy with others' work.
        least_own: Percent.

    Readings are averaged over 30 s first. Proven by a mean utilisation of 90 % or more, or, where utilisation is not
    measured, by power; and the power, where measured, must have risen by 30 % over idle and stood within 85 % of the
    way from idle to its median for 95 % of the phase. Power that falls under full utilisation, though not to that of
    an idle device, is a device that slows itself down, which says nothing against the load. Throughput decides only
    where nothing else is known. A processor that was busy, but for its loads less than ``least_own`` of the time,
    leaves it open how hot they would have made it. Own criterion: cool because idle is no pass.
    """
    used, used_answer = _utilization(utilization, phase, least_utilization)
    watts, share, power_answer, power_why = _power(power, phase, baseline)
    held = throughput or Figure.missing("throughput_held", "ratio", say("no inference requests"))
    against = []
    if used_answer is Answer.NO:
        against.append(
            say(
                "utilisation is {used:.0f} %, below {least_utilization:g} %",
                used=used.value,
                least_utilization=least_utilization,
            )
        )
    if power_answer is Answer.NO and not (power_why.startswith("it stood") and used_answer is Answer.YES):
        against.append(say("power: {power_why}", power_why=power_why))
    if against:
        answer, reason = Answer.NO, joined("; ", against)
    elif Answer.YES in (used_answer, power_answer):
        answer, reason = Answer.YES, ""
    elif held.value is not None and held.value >= LEAST_HELD:
        answer, reason = Answer.YES, say("only the inference throughput shows it")
    elif held.value is not None:
        answer, reason = Answer.NO, say("inference throughput fell to {held:.0%}", held=held.value)
    else:
        answer, reason = (
            Answer.UNKNOWN,
            joined(
                "; ",
                (
                    say("{f_name}: {reason}", f_name=figure.name, reason=why)
                    for figure, why in ((used, used.reason), (watts, power_why), (held, held.reason))
                ),
            ),
        )
    starved = own is not None and own.value is not None and own.value < least_own
    if starved and own is not None:
        cores = own.detail["cores"]
        why = say(
            "the load itself had {own:.0f} % of its {cores:g} cores' time, below {least_own:g} %",
            own=own.value,
            cores=cores,
            least_own=least_own,
        )
        answer, reason = (
            (Answer.UNKNOWN, why) if answer is Answer.YES else (answer, say("{reason}; {why}", reason=reason, why=why))
        )
    return LoadProof(
        proven=answer,
        utilization=used,
        power=watts,
        on_plateau=share,
        throughput=held,
        reason=reason,
        own=own,
        is_starved=starved,
    )


def judge_idle(
    baseline: Phase, *, utilization: Series | None, most_utilization: float = IDLE_UTILIZATION_PERCENT
) -> tuple[Answer, Figure]:
    """Whether the device was idle in the stretch that the baseline is taken from, and its mean utilisation, percent."""
    start, end = level_window(baseline)
    if utilization is None:
        return Answer.UNKNOWN, Figure.missing("idle_utilization", "percent", say("utilisation is not measured"))
    _, values = utilization.between(start, end).readings()
    if values.size == 0:
        return Answer.UNKNOWN, Figure.missing("idle_utilization", "percent", say("no reading in the baseline"))
    mean = float(values.mean())
    figure = Figure(name="idle_utilization", value=mean, unit="percent", detail={"highest": float(values.max())})
    return Answer.YES if mean <= most_utilization else Answer.NO, figure


def throughput_held(done_seconds: FloatArray, phase: Phase, *, amounts: FloatArray | None = None) -> Figure:
    """Throughput in the last fifth of a phase over that in its first fifth, as a ratio.

    Args:
        done_seconds: When each successful request ended, unix time, shape (n,), any order.
        phase: Usually steady.
        amounts: What each request brought, such as completion tokens, shape (n,); None counts requests.

    Standard uncertainty by √(v₁/N₁² + v₂/N₂²)·ratio, with N the amount in a part and v its variance: what ten equal
    stretches of the part scatter by, and never less than what the two requests at its borders leave open (a closed
    loop is far more regular than independent arrivals are). None for fewer than ten requests in the first part.
    """
    name = "throughput_held"
    length = phase.duration_seconds * HELD_SHARE
    weights = np.ones(done_seconds.size) if amounts is None else amounts
    first, first_variance, first_count = _amount(done_seconds, weights, phase.start_seconds, length)
    last, last_variance, last_count = _amount(done_seconds, weights, phase.end_seconds - length, length)
    if first_count < LEAST_REQUESTS or first <= 0:
        return Figure.missing(
            name,
            "ratio",
            say(
                "{first_count} requests in the first fifth, needs {least_requests}",
                first_count=first_count,
                least_requests=LEAST_REQUESTS,
            ),
        )
    ratio = last / first
    return Figure(
        name=name,
        value=ratio,
        unit="ratio",
        uncertainty=math.sqrt(last_variance + ratio**2 * first_variance) / first,
        detail={
            "first_per_second": first / length,
            "last_per_second": last / length,
            "requests": first_count + last_count,
        },
    )


def _amount(done: FloatArray, amounts: FloatArray, start: float, length: float) -> tuple[float, float, int]:
    inside = (done >= start) & (done < start + length)
    bins = np.minimum(((done[inside] - start) / length * 10).astype(np.intp), 9)
    sums = np.bincount(bins, weights=amounts[inside], minlength=10)
    scatter = float(sums.var(ddof=1)) * 10
    count = int(np.count_nonzero(inside))
    # A request that straddles a border counts whole or not at all: uniform, at each of the two.
    borders = 2 / 12 * float((amounts[inside] ** 2).mean()) if count else 0.0
    return float(sums.sum()), max(scatter, borders), count


def _utilization(series: Series | None, phase: Phase, least: float) -> tuple[Figure, Answer]:
    if series is None:
        return Figure.missing("utilization", "percent", say("not measured")), Answer.UNKNOWN
    _, values = series.during(phase).readings()
    if values.size == 0:
        return Figure.missing(
            "utilization", "percent", say("no reading in {phase_name}", phase_name=phase.name)
        ), Answer.UNKNOWN
    mean = float(values.mean())
    figure = Figure(name="utilization", value=mean, unit="percent", detail={"readings": int(values.size)})
    return figure, Answer.YES if mean >= least else Answer.NO


def _power(series: Series | None, phase: Phase, baseline: Phase | None) -> tuple[Figure, Figure, Answer, str]:
    """Median power, share of the time on the plateau, whether that is a loaded device's, and why not."""
    if series is None:
        return _no_power(say("not measured"))
    times, values = series.during(phase).readings()
    if values.size == 0:
        return _no_power(say("no reading in {phase_name}", phase_name=phase.name))
    per_block = max(round(SMOOTHED_SECONDS / series.period_seconds), 1)
    _, smooth = block_means(times, values, max(values.size // per_block, 1))
    median = float(np.median(smooth))
    idle = _idle_power(series, baseline)
    floor = 0.0 if idle is None else idle
    share = float(np.mean(smooth >= floor + PLATEAU * (median - floor)))
    watts = Figure(name="power", value=median, unit="watts", detail={"idle": idle})
    plateau = Figure(name="on_plateau", value=share, unit="ratio", detail={"lowest": float(smooth.min())})
    if median <= 0:
        # A plateau of nothing is none: nothing that runs draws no power.
        return (
            watts,
            plateau,
            Answer.UNKNOWN,
            say("0 W in {phase_name}: its meter shows nothing", phase_name=phase.name),
        )
    if idle is not None and median < LEAST_POWER_RISE * idle:
        return (
            watts,
            plateau,
            Answer.NO,
            say("{median:.0f} W under load against {idle:.0f} W at idle", median=median, idle=idle),
        )
    at_rest = 0.0 if idle is None else float(np.mean(smooth < LEAST_POWER_RISE * idle))
    if at_rest > 1 - LEAST_ON_PLATEAU:
        # A device that slows itself down still draws more than an idle one: here utilisation is what misleads.
        why = say(
            "it was that of an idle device for {at_rest:.0%} of {phase_name}", at_rest=at_rest, phase_name=phase.name
        )
        return watts, plateau, Answer.NO, why
    if share < LEAST_ON_PLATEAU:
        why = say(
            "it stood at its {median:.0f} W for {share:.0%} of {phase_name} only, at worst at {smooth:.0f} W",
            median=median,
            share=share,
            phase_name=phase.name,
            smooth=smooth.min(),
        )
        return watts, plateau, Answer.NO, why
    if idle is None:
        return watts, plateau, Answer.UNKNOWN, say("the idle power is not known")
    return watts, plateau, Answer.YES, ""


def _no_power(why: str) -> tuple[Figure, Figure, Answer, str]:
    missing = Figure.missing("power", "watts", why), Figure.missing("on_plateau", "ratio", why)
    return (*missing, Answer.UNKNOWN, why)


def _idle_power(series: Series, baseline: Phase | None) -> float | None:
    if baseline is None:
        return None
    _, values = series.between(*level_window(baseline)).readings()
    return float(np.median(values)) if values.size else None
