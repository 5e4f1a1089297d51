"""What a figure needs before it may say that something is right; a need that is not met leaves the finding open."""

from __future__ import annotations

from pytest_thermal.analysis import Answer, LoadProof, LoopFaultKind
from pytest_thermal.findings.material import Material
from pytest_thermal.findings.run_events import busy_beside, critical_stops
from pytest_thermal.findings.staleness import ADVICE as STALE_ADVICE
from pytest_thermal.findings.telling import FAULTS
from pytest_thermal.findings.verdict import OpenError
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure, Series

ADVICE = {
    LoopFaultKind.PUMP_STOPPED: say("look at the pump: its power, its connector, its speed in `pytest --sensors`"),
    LoopFaultKind.FLOW_LOW: say("look for a kinked hose, a clogged filter, a closed valve, a pump on a low setting"),
    LoopFaultKind.AIR: say("bleed the loop and top it up, with the pump running and the machine tilted"),
    LoopFaultKind.CONTACT: say("mount the cold plate anew: paste or pad, and even pressure"),
    LoopFaultKind.RADIATOR: say("clean radiator and filters, and see that its fans turn under load"),
    LoopFaultKind.SUPPLY_WARM: say("cool the room or the facility water, and look for warm air that comes back in"),
    LoopFaultKind.SENSOR_STUCK: say("read the sensor with another tool; reload its driver, or restart the machine"),
}
"""What to do about a fault of the loop."""
SEEN_STOPPED = 0.1
"""Share of the looks at which the load must have stood still before that is what is told."""
STOPPED_ADVICE = say("put that right first; events.jsonl of the run says when it was seen")
"""Where the load was taken off before its time."""


def need_series(material: Material, sensor_id: str, *, empty: bool = False) -> Series:
    """The readings of a sensor that has some; with ``empty`` also of one that has none."""
    series = material.series(sensor_id)
    if series is None:
        raise OpenError(
            say("the run has no sensor {sensor_id}", sensor_id=sensor_id),
            likely=say("the device is gone, or was not there when the recording began"),
            advice=say("pytest --sensors"),
        )
    if not empty and not series.present.any():
        raise OpenError(
            say("{sensor_id} gave no reading at all", sensor_id=sensor_id), likely=why_missing(material, series)
        )
    return series


def need_phases(material: Material, *names: str) -> None:
    """That the run has these phases."""
    lacking = [name for name in names if name not in material.phases]
    if not lacking:
        return
    if not material.phases:
        if material.is_foreign:
            raise OpenError(
                say("the log's phases cannot be told: {why_no_phases}", why_no_phases=material.why_no_phases),
                advice=say(
                    "a phase column that names baseline, ramp, steady and cooldown; or a log of one whole cycle"
                ),
            )
        raise OpenError(
            say("the run has no phases: {why_no_phases}", why_no_phases=material.why_no_phases),
            advice=say("run it again"),
        )
    raise OpenError(
        say("the run has no {names}", names=joined(" and no ", lacking)),
        likely=say("the log does not reach so far")
        if material.is_foreign
        else say("it was ended early, or its plan had none"),
        advice=say("log the whole cycle") if material.is_foreign else say("run it again, to its end"),
    )


def need_coverage(material: Material, series: Series, *names: str) -> None:
    """That these phases are there, and the sensor's readings complete in each."""
    need_phases(material, *names)
    for name in names:
        covered = material.coverage(series, name)
        if covered.complete is not Answer.YES:
            raise OpenError(
                say(
                    "{sensor} has holes in {name}: {reason}", sensor=series.sensor.id, name=name, reason=covered.reason
                ),
                likely=why_missing(material, series, covered.longest_gap),
                advice=say("test_coverage[{sensor}] says more", sensor=series.sensor.id),
            )


def need_belief(material: Material, series: Series) -> None:
    """That the sensor is not stuck."""
    health = material.figures(series).health
    if health.stuck is Answer.YES:
        raise OpenError(
            say("{sensor} is stuck: {reason}", sensor=series.sensor.id, reason=health.reason),
            likely=say("its driver gives an old reading, or the device hangs"),
            advice=ADVICE[LoopFaultKind.SENSOR_STUCK],
        )


def need_fresh(material: Material, series: Series) -> None:
    """That its readings are of the time they are given for."""
    stale = material.unproven(series)
    if stale:
        raise OpenError(
            say("{sensor} is stuck, or too coarse: it {stale}", sensor=series.sensor.id, stale=stale),
            likely=say("its source gives an old reading and calls it good, or reads too coarsely to show a change"),
            advice=STALE_ADVICE,
        )


def need_cold_start(material: Material, series: Series) -> None:
    """That the baseline was settled and idle, so that something may be built on it."""
    need_coverage(material, series, "baseline")
    device = series.sensor.device
    answer, how = material.idle(device)
    if answer is not Answer.YES:
        said = say("was not idle") if answer is Answer.NO else say("is not known to have been idle")
        raise OpenError(
            say("{device} {said} in the baseline: {how}", device=device, said=said, how=how),
            likely=say("something else ran on it") if answer is Answer.NO else "",
            advice=_column(device) if answer is Answer.UNKNOWN else say("end it and run again"),
        )
    settled = material.figures(series).baseline_settled
    if settled is None or settled.settled is not Answer.YES:
        raise OpenError(
            say(
                "the baseline of {sensor} is not settled: {reason}",
                sensor=series.sensor.id,
                reason=settled.reason if settled else say("none"),
            ),
            likely=say("the machine was still warm from earlier work, or the room's temperature moves"),
            advice=say("let it stand, or a longer --baseline"),
        )


def need_load(material: Material, device: str) -> None:
    """That the device was loaded in full: cool because idle is no pass."""
    need_phases(material, "steady")
    proof = material.proof(device)
    if proof.proven is Answer.YES:
        return
    if proof.proven is Answer.NO:
        likely, advice = say("it is cool because it had nothing to do"), load_advice(material, device)
        if proof.is_starved:
            likely, advice = why_starved(material, proof)
        stops = critical_stops(material.recording)
        if stops:
            likely, advice = say("the load was taken off: {stop}", stop=stops[0]), STOPPED_ADVICE
        raise OpenError(
            say("{device} was not loaded in full in steady: {reason}", device=device, reason=proof.reason),
            likely=likely,
            advice=advice,
        )
    raise unproven(material, device, proof)


def need_value(figure: Figure, what: str) -> float:
    """The figure's value."""
    if figure.value is None:
        raise OpenError(say("{what}: {reason}", what=what, reason=figure.reason))
    return figure.value


def unproven(material: Material, device: str, proof: LoadProof) -> OpenError:
    """What to tell where it is not known whether a device was loaded."""
    if not proof.is_starved:
        seen = say("whether {device} was loaded is not known: {reason}", device=device, reason=proof.reason)
        return OpenError(seen, advice=_column(device))
    likely, advice = why_starved(material, proof)
    seen = say(
        "whether {device} was loaded in full is not known: it was busy, but {reason}",
        device=device,
        reason=proof.reason,
    )
    return OpenError(seen, likely=likely, advice=advice)


def why_starved(material: Material, proof: LoadProof) -> tuple[str, str]:
    """Why the loads had less of the processors than they were to have, and what to do about it."""
    detail = {} if proof.own is None else proof.own.detail
    stopped, quota, cores = detail.get("stopped"), detail.get("quota_cores"), detail.get("cores")
    if isinstance(stopped, float) and stopped >= SEEN_STOPPED:
        return (
            say(
                "it stood still (SIGSTOP, a debugger, a batch system) for {stopped:.0f} % of that time",
                stopped=100 * stopped,
            ),
            say("see who stopped it, and run again"),
        )
    if isinstance(quota, float) and isinstance(cores, float) and quota < cores:
        return (
            say("its control group may use {quota:g} of these {cores:g} cores", quota=quota, cores=cores),
            say("run outside of that container, or without its CPU quota (--cpus, CPUQuota=, limits.cpu)"),
        )
    others = busy_beside(material.recording)
    return (
        say("something else computed beside it: {others}", others=others)
        if others
        else say("something else had the processors"),
        say("end what runs beside it; where that belongs to the bench: thermal_limits own_share_least"),
    )


def load_advice(material: Material, device: str) -> str:
    """What makes a load that loads."""
    if material.is_foreign:
        return say("log a cycle in which it works at full load")
    if kind_of(device) is Kind.CPU:
        return say("[stress] cpu_workers unset, so that every core works; look for a quota of a container")
    return say("--find-concurrency, or [stress] mode gpu where the model is served by another machine")


def fault_words(material: Material, series: Series, otherwise: str, advice: str) -> tuple[str, str]:
    """What is likely and what to try, from the fault that the curves name; else what is given."""
    fault = material.fault(series)
    if not fault.candidates:
        return otherwise, advice
    evidence = joined("; ", fault.evidence)
    if fault.kind is not None:
        return say("{kind}: {evidence}", kind=FAULTS[fault.kind], evidence=evidence), ADVICE[fault.kind]
    said = say(
        "one of these: {names}: {evidence}",
        names=joined(", ", [FAULTS[kind] for kind in fault.candidates]),
        evidence=evidence,
    )
    if material.earlier is None:
        return said, say("compare with an earlier good run, which tells them apart: --against RUN")
    return said, "; or ".join(ADVICE[candidate] for candidate in fault.candidates[:2])


def why_missing(material: Material, series: Series, gap: Figure | None = None) -> str:
    """The recorder's reason for the readings that are not there, in words; empty where it has none."""
    start = gap.detail.get("start_seconds") if gap is not None else None
    if isinstance(start, (int, float)):
        at = float(start) + 1.5 * series.period_seconds
    else:
        at = float(series.time_seconds[-1]) if len(series) else 0.0
    reason = material.recording.why_missing(series.sensor.id, at)
    if reason is None:
        return ""
    return (
        say("{reason}: {detail}", reason=reason.reason, detail=reason.detail) if reason.detail else str(reason.reason)
    )


def _column(device: str) -> str:
    return say(
        "log {device}.utilization_percent (nvidia-smi: utilization.gpu) or {device}.power_watts beside the temperature",
        device=device,
    )
