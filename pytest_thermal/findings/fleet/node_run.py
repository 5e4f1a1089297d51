"""One node's run as figures: read whole, judged, and then let go, so that a fleet needs no more room than one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pytest_thermal import __version__
from pytest_thermal.findings.fleet.archive import FoundRun, compared
from pytest_thermal.findings.fleet.conditions import conditions_of
from pytest_thermal.findings.judgement import Judgement, finding_as_json, told_finding
from pytest_thermal.findings.limits import Limits, limits_for
from pytest_thermal.findings.phase import phase_finding
from pytest_thermal.findings.run_facts import is_simulated, plan_of, recorded_thresholds, time_scale_of
from pytest_thermal.findings.stretching import stretch
from pytest_thermal.findings.subjects import in_order, main_temperature
from pytest_thermal.findings.telling import STATES
from pytest_thermal.model import Outcome, Sensor
from pytest_thermal.model.said import say
from pytest_thermal.model.series import BoolArray, Figure, FloatArray, Phase
from pytest_thermal.recording import Recording, RecordingError, Requests, open_recording, read_run
from pytest_thermal.recording.layout import SEAL, samples_checksum
from pytest_thermal.recording.words import sensor_from_json

LIMITED = 429
UNTOLD = "untold"
UNNAMED = "gateway"
"""In place of the name of a domain that no run tells."""
KEPT = ("check", "subject", "outcome", "seen", "likely", "advice")
COUNTED_TOKENS = 0.95
"""Of the answers must have counted their tokens, as ``Material.throughput`` has it."""
UNREADABLE = (TypeError, ValueError, KeyError, AttributeError, IndexError)
"""What a file that was edited by hand, or is of another program, ends in."""

LimitsOf = Callable[[Recording], Limits]


@dataclass(frozen=True, kw_only=True)
class Card:
    """One temperature of one node, in figures."""

    node: str
    sensor: str
    device: str
    figures: Mapping[str, Figure]
    """``rise``, ``peak``, ``steady``, ``resistance``, ``slow_time_constant``: those that there are."""
    is_main: bool
    """Whether it stands for its device."""
    load: str
    """Outcome of the check that its device was loaded in full."""
    load_seen: str

    def value(self, name: str) -> float | None:
        """A figure's value, where it has one."""
        figure = self.figures.get(name)
        return None if figure is None else figure.value


@dataclass(frozen=True, kw_only=True)
class Used:
    """What a node asked of its gateways."""

    requests: int
    """But for those that the load's end cut off."""
    answered: int
    limited: int
    """Refused for a quota: status 429, or another whose words say so."""
    failed: int
    """For any other reason."""
    most_frequent_error: str
    prompt_tokens: float
    completion_tokens: float
    answers_per_second: float | None
    """In steady; None without one."""
    tokens_per_second: float | None
    """Completion tokens in steady; None where too few answers count them."""
    by_phase: Mapping[str, int] = field(default_factory=dict)
    """Limited requests by phase."""
    by_limit: Mapping[str, int] = field(default_factory=dict)
    """Limited requests by the limit that they met, as the gateway told it (`access.limits`); ``untold`` where not."""
    by_domain: Mapping[str, Used] = field(default_factory=dict)
    """The same of each domain alone; one, called after all of them, where the run does not say which was asked."""


@dataclass(frozen=True, kw_only=True)
class NodeRun:
    """What is kept of a node's run."""

    node: str
    path: Path
    state: str
    simulated: bool
    time_scale: float
    how: str
    """``summary``: by the findings that the run was sealed with; ``judged``: judged now; ``""``: not at all."""
    why_judged: str = ""
    """Why the run's own summary did not count."""
    bench: str = ""
    changed: tuple[str, ...] = ()
    sealed: bool = True
    """Whether ``run.json`` has a checksum of its own."""
    samples: str = ""
    """One checksum for all samples; empty where the run has none."""
    end_seconds: float | None = None
    """Unix time, by the node's own clock."""
    cards: tuple[Card, ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()
    """Those that did not pass, skips left out, as ``finding_as_json``."""
    passed: int = 0
    phases: tuple[Phase, ...] = ()
    """In wall time, by the node's own clock."""
    planned: Mapping[str, float] = field(default_factory=dict)
    clock_offset_seconds: float | None = None
    """The node's clock minus that of whoever started all, where the run knows it."""
    clock_steps: int = 0
    conditions: Mapping[str, str] = field(default_factory=dict)
    gateways: tuple[str, ...] = ()
    """Names of the domains that were asked."""
    used: Used | None = None
    warnings: tuple[str, ...] = ()
    trouble: str = ""
    """Why nothing could be read; then all else is empty."""


def read_node(found: FoundRun, node: str, *, limits: LimitsOf | None = None) -> NodeRun:
    """A node's run in figures.

    The run's own summary counts where the run is finished, every file is as it was sealed, this version made it, and
    nobody names other limits now; else the samples are read and judged. Never raises for what lies in the folder.

    Args:
        found: What ``find_fleet`` found.
        node: Its name in the fleet.
        limits: What to judge by instead of the limits of each run.
    """
    try:
        return _read(found, node, limits)
    except RecordingError as error:
        trouble = error.seen
    except UNREADABLE as error:
        trouble = say("damaged: {kind}: {error}", kind=type(error).__name__, error=error)
    except OSError as error:
        trouble = say("cannot be read: {error}", error=error.strerror or error)
    return NodeRun(
        node=node, path=found.path, state=found.state, simulated=False, time_scale=1.0, how="", trouble=trouble
    )


def _read(found: FoundRun, node: str, limits: LimitsOf | None) -> NodeRun:
    if found.trouble:
        raise RecordingError(found.trouble)
    if found.is_log:
        return _judged(open_recording(found.path), node, limits, why=say("a log from elsewhere has no summary"))
    light = read_run(found.path, samples=False)
    why = say("other limits are named now") if limits is not None else why_not_by_summary(light)
    if why:
        del light
        return _judged(read_run(found.path), node, limits, why=why)
    return _summarised(light, node)


def why_not_by_summary(run: Recording) -> str:
    """Why the summary of a run is not enough to go by; empty where it is."""
    summary = run.summary
    made_by = _mapping(run.facts.get("versions")).get("pytest-thermal")
    if run.state != "finished":
        return say("the run is {state}", state=STATES.get(run.state, run.state))
    if run.changed:
        return say("files were changed since it was sealed")
    if summary is None or not isinstance(summary.get("findings"), list) or not summary.get("figures"):
        return say("it has no summary")
    if "summary.json" not in _mapping(run.facts.get("sha256")):
        return say("its summary is not sealed")
    if made_by != __version__:
        return say("another version made its summary ({version})", version=made_by or say("unknown"))
    return ""


# ------------------------------------------------------------------------------------------------------ both ways here


def _summarised(run: Recording, node: str) -> NodeRun:
    summary: Mapping[str, Any] = run.summary or {}
    told = [dict(one) for one in summary["findings"] if isinstance(one, Mapping)]
    stretched = stretch(run, time_scale_of(run.facts))
    phases = [finding_as_json(phase_finding(stretched, name)) for name in _phase_names(run)]
    sensors = in_order(sensor_from_json(data) for data in run.facts.get("sensors") or ())
    figures = {
        str(sensor): [_figure_of(one) for one in rows if isinstance(one, Mapping)]
        for sensor, rows in _mapping(summary["figures"]).items()
    }
    warnings = tuple(str(text) for text in summary.get("warnings") or ())
    judged = _Judged(how="summary", why="", figures=figures, findings=[*phases, *told], warnings=warnings)
    return _kept(run, node, sensors, judged)


def _judged(recording: Recording, node: str, limits: LimitsOf | None, *, why: str) -> NodeRun:
    monitor, origin = recorded_thresholds(recording.facts)
    judgement = Judgement(
        recording,
        limits(recording) if limits is not None else limits_for(monitor, origin=origin),
        time_scale=time_scale_of(recording.facts),
        simulated=is_simulated(recording.facts),
    )
    judged = judgement.recording
    phases = [finding_as_json(phase_finding(judged, name)) for name in _phase_names(judged)]
    findings = [finding_as_json(one) for one in judgement.findings()]
    # Those that the run declares and has lost belong to it too.
    told = recording.facts.get("sensors")
    declared = [sensor_from_json(data) for data in told] if isinstance(told, list) else []
    sensors = in_order([*declared, *(one.sensor for one in recording.series.values())])
    scaled = recording if recording.phases else judged  # phases that were found, in a log that names none
    found = _Judged(
        how="judged",
        why=why,
        figures=judgement.figures(),
        findings=[*phases, *findings],
        warnings=judgement.warnings(),
    )
    return _kept(scaled, node, sensors, found)


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """What was concluded of a run, in either way."""

    how: str
    why: str
    figures: Mapping[str, Sequence[Figure]]
    findings: Sequence[Mapping[str, Any]]
    warnings: Sequence[str]


def _kept(run: Recording, node: str, sensors: Sequence[Sensor], judged: _Judged) -> NodeRun:
    findings = [told_finding(one, lambda text: text) for one in judged.findings]  # as they were said
    facts = run.facts
    loads = {str(one["subject"]): one for one in findings if one.get("check") == "load"}
    by_id = {sensor.id: sensor for sensor in sensors}
    cards = []
    for name in compared(sensors):
        sensor = by_id[name]
        main = main_temperature(sensor.device, sensors)
        load = loads.get(sensor.device, {})
        cards.append(
            Card(
                node=node,
                sensor=name,
                device=sensor.device,
                figures=_first_of_each(judged.figures.get(name, ())),
                is_main=main is not None and main.id == name,
                load=str(load.get("outcome", Outcome.INCONCLUSIVE.value)),
                load_seen=_text(load.get("seen", say("whether it was loaded was not judged"))),
            )
        )
    clock = _mapping(facts.get("clock"))
    steps = clock.get("steps")
    offset = _mapping(_mapping(clock.get("offsets")).get("shared_disk")).get("offset_seconds")
    gateways = facts.get("gateways")
    return NodeRun(
        node=node,
        path=run.path,
        state=run.state,
        simulated=is_simulated(facts),
        time_scale=time_scale_of(facts),
        how=judged.how,
        why_judged=judged.why,
        bench=str(facts.get("bench") or ""),
        changed=tuple(run.changed),
        sealed=SEAL in facts,
        samples=samples_checksum(facts),
        end_seconds=_time(facts.get("end_seconds")),
        cards=tuple(cards),
        findings=tuple({key: _text(one.get(key, "")) for key in KEPT} for one in findings if _is_told(one)),
        passed=sum(1 for one in findings if one.get("outcome") == Outcome.PASSED.value),
        phases=run.phases if run.absolute_time else (),
        planned=plan_of(facts),
        clock_offset_seconds=float(offset) if isinstance(offset, (int, float)) else None,
        clock_steps=len(steps) if isinstance(steps, list) else 0,
        conditions=conditions_of(facts, sensors, node=node),
        gateways=tuple(map(str, gateways)) if isinstance(gateways, Mapping) else (),
        used=used_of(run.requests, run.phases, tuple(map(str, gateways)) if isinstance(gateways, Mapping) else ()),
        warnings=tuple(judged.warnings),
    )


def _phase_names(run: Recording) -> list[str]:
    return list(plan_of(run.facts)) or [str(phase.name) for phase in run.phases] or ["steady"]


def _is_told(found: Mapping[str, Any]) -> bool:
    return found.get("outcome") in (Outcome.FAILED.value, Outcome.INCONCLUSIVE.value, Outcome.BLOCKED.value)


def _first_of_each(figures: Sequence[Figure]) -> dict[str, Figure]:
    """Those that are compared, by name; of a time constant the one of heating where it is known, else of cooling."""
    found: dict[str, Figure] = {}
    for figure in figures:
        if figure.name not in ("rise", "peak", "steady", "resistance", "slow_time_constant"):
            continue
        before = found.get(figure.name)
        if before is None or before.value is None:
            found[figure.name] = figure
    return found


def _figure_of(told: Mapping[str, Any]) -> Figure:
    value, uncertainty = told.get("value"), told.get("uncertainty")
    return Figure(
        name=str(told["name"]),
        value=None if value is None else float(value),
        unit=str(told.get("unit", "")),
        uncertainty=None if uncertainty is None else float(uncertainty),
        reason=str(told.get("reason") or ("" if value is not None else "not told")),
        detail=dict(_mapping(told.get("detail"))),
    )


# ------------------------------------------------------------------------------------------------------------ requests


def used_of(requests: Requests | None, phases: Sequence[Phase], gateways: Sequence[str] = ()) -> Used | None:
    """Counts of a run's requests, of all and by domain, and their rates in steady, in wall time."""
    if requests is None:
        return None
    every = np.ones(len(requests), dtype=np.bool_)
    whole = _used_of(requests, every, phases)
    by_domain = {name: requests.domain.where(name.__eq__) for name in requests.domain.counts(every)}
    unnamed = " + ".join(gateways) or UNNAMED
    return replace(
        whole,
        by_domain={
            name or unnamed: whole if len(by_domain) == 1 else _used_of(requests, mask, phases)
            for name, mask in sorted(by_domain.items())
        },
    )


def _used_of(requests: Requests, among: BoolArray, phases: Sequence[Phase]) -> Used:
    counted = among & ~requests.error.where(lambda error: error.startswith("cancelled"))
    limited = counted & ((requests.status == LIMITED) | requests.limit.where(bool))
    good = counted & (requests.status == 200) & ~requests.error.where(bool)
    bad = counted & ~good & ~limited
    errors = requests.error.counts(counted & ~good)
    steady = next((phase for phase in phases if phase.name == "steady"), None)
    ended = requests.start_seconds + np.nan_to_num(requests.latency_seconds)
    answers = tokens = None
    if steady is not None and steady.duration_seconds > 0:
        inside = good & (ended >= steady.start_seconds) & (ended < steady.end_seconds)
        answers = float(np.count_nonzero(inside)) / steady.duration_seconds
        told = requests.completion_tokens[inside]
        if told.size and np.mean(np.isfinite(told)) >= COUNTED_TOKENS:
            tokens = float(np.nansum(told)) / steady.duration_seconds
    return Used(
        requests=int(np.count_nonzero(counted)),
        answered=int(np.count_nonzero(good)),
        limited=int(np.count_nonzero(limited)),
        failed=int(np.count_nonzero(bad)),
        most_frequent_error=next(iter(errors), ""),
        prompt_tokens=_sum(requests.prompt_tokens[good]),
        completion_tokens=_sum(requests.completion_tokens[good]),
        answers_per_second=answers,
        tokens_per_second=tokens,
        by_phase=requests.phase.counts(limited),
        by_limit={name or UNTOLD: count for name, count in requests.limit.counts(limited).items()},
    )


def _sum(values: FloatArray) -> float:
    return float(np.nansum(values)) if values.size else 0.0


def _time(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
