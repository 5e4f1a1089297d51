"""Whether inference throughput held through steady; and if not, whether heat, the access layer or too little work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pytest_thermal.analysis import measure_throttling
from pytest_thermal.analysis.load_proof import HELD_SHARE
from pytest_thermal.findings.devices import throttle_reasons, utilization_of
from pytest_thermal.findings.material import Material
from pytest_thermal.findings.needs import STOPPED_ADVICE, need_load, need_phases
from pytest_thermal.findings.run_events import client_limits, critical_stops
from pytest_thermal.findings.subjects import is_heated
from pytest_thermal.findings.telling import milliseconds
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Phase
from pytest_thermal.recording import Requests

SIGMAS = 1.645
"""One-sided 95 %."""
MORE_ERRORS = 0.05
"""More of the requests failing than at first, as a share."""
TOLD_ERRORS = 0.01
CANCELLED = "cancelled"
SLOWER = 1.25
"""Latency that grew by this factor."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The requests that ended in one fifth of steady."""

    count: int
    failed: int
    refused: int
    """With status 429 or 503."""
    latency_seconds: float
    """Median of those that succeeded, in wall time; NaN without any."""
    error: str
    """The most frequent one."""

    @property
    def failing(self) -> float:
        """Share that failed."""
        return self.failed / self.count if self.count else 0.0


def throughput(material: Material, time_scale: float) -> Verdict:
    """Throughput of inference in the last fifth of steady against the first."""
    need_phases(material, "steady")
    requests = material.recording.requests
    if requests is None or not len(requests):
        raise OpenError(
            say("no inference request was recorded"),
            likely=say("the load was not inference, or ended before its first answer"),
            advice=say("[stress] mode inference or mixed"),
        )
    first, last = (_part(requests, phase, time_scale) for phase in _fifths(material.phases["steady"]))
    whole = _part(requests, material.phases["steady"], time_scale)
    held, limit = material.throughput, material.limits["throughput_least"]
    evidence: dict[str, Scalar] = {
        "held": held.value,
        "uncertainty": held.uncertainty,
        "requests": whole.count,
        "failed": whole.failed,
        "first_latency_seconds": _rounded(first.latency_seconds),
        "last_latency_seconds": _rounded(last.latency_seconds),
        "limit": limit.value,
        "limit_origin": limit.origin,
    }
    if held.value is None:
        if whole.count and whole.failed == whole.count:
            return failed(
                say("all {count} requests in steady failed: {error}", count=whole.count, error=whole.error),
                likely=say("the access layer: the gateway, its key or its model"),
                advice=say("pytest suites/supernode, which says at which layer"),
                evidence=evidence,
            )
        raise OpenError(
            say("whether throughput held is not known: {reason}", reason=held.reason), advice=say("a longer --duration")
        )
    warnings: tuple[str, ...] = ()
    if whole.failing > TOLD_ERRORS:
        warnings = (
            say(
                "{failed} of {count} requests in steady failed: {error}",
                failed=whole.failed,
                count=whole.count,
                error=whole.error,
            ),
        )
    rates = _rates(held.detail, time_scale)
    uncertainty = held.uncertainty or 0.0
    sigma = f" ± {100 * uncertainty:.0f}" if uncertainty >= 0.005 else ""
    said = say(
        "throughput at the end of steady was {held:.0f}{sigma} % of that at its start{rates}",
        held=held.value * 100,
        sigma=sigma,
        rates=rates,
    )
    # Answers that were counted are counted, however late they were looked at. What became fewer may be the client's.
    limited = client_limits(material.recording, "steady")
    if limited and held.value < limit.value and not _heat(material):
        raise OpenError(
            say("{said}, and whether the gateway was slower is not known: {limited}", said=said, limited=limited[0]),
            likely=say("the load generator shares its core with other work, or has more to ask than one core can"),
            advice=say(
                "more inference_workers, fewer concurrent_requests or cpu_workers, or a machine of its own for the load"
            ),
        )
    warnings += tuple(limited[:1])
    stops = critical_stops(material.recording)
    if stops and held.value < limit.value:
        raise OpenError(say("{said}, since the load was taken off", said=said), likely=stops[0], advice=STOPPED_ADVICE)
    if held.value + SIGMAS * uncertainty < limit.value:
        likely, advice = _why(material, first, last)
        return failed(
            say("{said}, less than {limit}", said=said, limit=limit.text),
            likely=likely,
            advice=advice,
            warnings=warnings,
            evidence=evidence,
        )
    if held.value < limit.value:
        raise OpenError(
            say("{said}: too few requests to say whether at least {limit} held", said=said, limit=limit.text),
            advice=say("a longer --duration"),
        )
    for device in _cards(material):
        need_load(material, device)
    return passed(say("{said}, at least {limit}", said=said, limit=limit.text), warnings=warnings, evidence=evidence)


# ------------------------------------------------------------------------------------------------------- what it was


def _why(material: Material, first: Part, last: Part) -> tuple[str, str]:
    """Heat, else the access layer, else too little work for the cards."""
    heat = _heat(material)
    if heat:
        return say("heat: {heat}", heat=heat), say("test_threshold, test_throttling and test_rise say more of the loop")
    if last.failing - first.failing >= MORE_ERRORS:
        before, now = _percent(first.failing), _percent(last.failing)
        grew = say(
            "{before} of the requests failed at first, {now} at the end ({error})",
            before=before,
            now=now,
            error=last.error,
        )
        if last.refused > last.failed / 2:
            return say("the access layer refuses: {grew}", grew=grew), say(
                "raise the gateway's limits, or fewer concurrent_requests"
            )
        return say("the access layer: {grew}", grew=grew), say("pytest suites/supernode, and the gateway's own log")
    cool, idle = _coolness(material), _idle_cards(material)
    slower = last.latency_seconds > SLOWER * first.latency_seconds
    if idle and slower:
        waited = say(
            "latency went from {latency_seconds:.2f} s to {latency_seconds_2:.2f} s while {idle}",
            latency_seconds=first.latency_seconds,
            latency_seconds_2=last.latency_seconds,
            idle=idle,
        )
        return say("the access layer: {waited}; {cool}", waited=waited, cool=cool), say(
            "look at the gateway's queue and rate limits, and at the network"
        )
    if idle:
        return (
            say("concurrency or the CPU side: {cool}, and {idle}", cool=cool, idle=idle),
            say("--find-concurrency; look at the engine's CPU threads"),
        )
    return (
        say("not heat, as far as is measured: {cool}; and not errors", cool=cool),
        say("the engine's own log: longer prompts, a full KV cache, other users of the cards"),
    )


def _heat(material: Material) -> str:
    """Evidence that the cards were too hot in the last fifth, or nothing."""
    _, last = _fifths(material.phases["steady"])
    for device in _cards(material):
        spent = measure_throttling(throttle_reasons(device, material.recording.series), last).thermal.value
        if spent:
            return say(
                "{device} slowed itself down for {spent} at the end of steady because of heat",
                device=device,
                spent=milliseconds(spent),
            )
    for sensor in material.sensors:
        limit = material.limits.threshold(sensor)
        if limit is None or not is_heated(sensor):
            continue
        _, values = material.figures(material.recording.series[sensor.id]).clean.during(last).readings()
        if values.size and float(values.max()) > limit.value:
            return say(
                "{sensor} was at {values:.1f} °C at the end of steady, more than {limit}",
                sensor=sensor.id,
                values=values.max(),
                limit=limit.text,
            )
    return ""


def _coolness(material: Material) -> str:
    _, last = _fifths(material.phases["steady"])
    tops = []
    for device in _cards(material):
        main = material.main(device)
        if main is not None:
            _, values = material.figures(material.recording.series[main.id]).clean.during(last).readings()
            tops += [float(values.max())] if values.size else []
    return (
        say("temperatures are fine (at most {tops:.0f} °C)", tops=max(tops))
        if tops
        else say("no card's temperature is measured")
    )


def _idle_cards(material: Material) -> str:
    """Cards that had less to do than they could, in the last fifth."""
    _, last = _fifths(material.phases["steady"])
    least = material.limits["utilization_least"].value
    found = []
    for device in _cards(material):
        use = utilization_of(device, material.recording.series)
        _, values = use.during(last).readings() if use is not None else (None, np.empty(0))
        if values.size and float(values.mean()) < least:
            found.append(say("{device} was busy for {values:.0f} % only", device=device, values=values.mean()))
    return joined(", ", found[:3])


# ----------------------------------------------------------------------------------------------------------- figures


def _cards(material: Material) -> tuple[str, ...]:
    devices = dict.fromkeys(sensor.device for sensor in material.sensors)
    return tuple(device for device in devices if kind_of(device) is Kind.ACCELERATOR)


def _fifths(steady: Phase) -> tuple[Phase, Phase]:
    """The first and the last fifth."""
    length = steady.duration_seconds * HELD_SHARE
    return (
        replace(steady, end_seconds=steady.start_seconds + length),
        replace(steady, start_seconds=steady.end_seconds - length),
    )


def _part(requests: Requests, phase: Phase, time_scale: float) -> Part:
    ended = requests.start_seconds + np.nan_to_num(requests.latency_seconds)
    inside = (ended >= phase.start_seconds) & (ended < phase.end_seconds)
    # What the end of the load cut off did not fail.
    inside &= ~requests.error.where(lambda error: error.startswith(CANCELLED))
    told = requests.error.where(bool)
    bad = inside & ((requests.status != 200) | told)
    good = requests.latency_seconds[inside & ~bad]
    errors = requests.error.counts(bad & told)
    for status, count in zip(*np.unique(requests.status[bad & ~told], return_counts=True), strict=True):
        errors[f"status {status}"] = errors.get(f"status {status}", 0) + int(count)
    return Part(
        count=int(np.count_nonzero(inside)),
        failed=int(np.count_nonzero(bad)),
        refused=int(np.count_nonzero(np.isin(requests.status, (429, 503)) & bad)),
        latency_seconds=float(np.nanmedian(good)) / time_scale if np.isfinite(good).any() else float("nan"),
        error=max(errors, key=lambda error: errors[error]) if errors else "",
    )


def _rates(detail: Mapping[str, Scalar], time_scale: float) -> str:
    """In wall time."""
    first, last = detail.get("first_per_second"), detail.get("last_per_second")
    if not isinstance(first, (int, float)) or not isinstance(last, (int, float)):
        return ""
    return say(
        " ({rate} → {rate_2} {get}/s)",
        rate=_rate(first * time_scale),
        rate_2=_rate(last * time_scale),
        get=detail.get("amounts", "requests"),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _rounded(value: float) -> float | None:
    return round(value, 4) if np.isfinite(value) else None
