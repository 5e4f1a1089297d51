"""Which earlier run this one is compared with: the only module here that reads files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_thermal.analysis import not_comparable
from pytest_thermal.findings.run_facts import comparable_facts, facts_of, lengths_of, plan_of, why_not_whole
from pytest_thermal.findings.telling import STATES
from pytest_thermal.model import Outcome
from pytest_thermal.model.said import joined, say
from pytest_thermal.recording import Recording, RecordingError, open_recording
from pytest_thermal.recording.layout import RUN, read_run_json
from pytest_thermal.recording.run_reader import OF_ANOTHER_SHAPE
from pytest_thermal.recording.run_state import FINISHED, FOREIGN, state_of
from pytest_thermal.recording.words import sensor_from_json

LATEST, NONE = "latest", "none"
NEEDED = ("baseline", "steady")
OF_HEAT = ("baseline", "threshold", "rise", "settled", "load", "throttling", "pump", "leak", "rebound", "drift")
"""Checks that a run must not have failed itself to be what others are measured by."""


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """The earlier run to compare with, or why there is none."""

    name: str
    """What was asked for: ``latest``, ``none``, a run's name or a path."""
    recording: Recording | None
    why: tuple[str, ...]
    """Each newer run that was passed over, with its reason; or why the one asked for cannot be compared with."""

    @property
    def named(self) -> bool:
        """Whether a certain run was asked for: that it cannot be had is then an open question, and no skip."""
        return self.name not in {LATEST, NONE}


def choose_earlier(archive: Path, recording: Recording, against: str | Path) -> Earlier:
    """The run to compare with. Never raises for what lies in the archive: whatever is unreadable is told in ``why``.

    Args:
        archive: The folder of run directories.
        recording: This run; it may lie in the archive.
        against: ``latest``: the newest finished, comparable run of the same bench that did not fail itself; ``none``;
            else the name of a run in the archive, or the path of a run directory or a log.
    """
    name = str(against)
    if name == NONE:
        return Earlier(name=name, recording=None, why=(say("--against none"),))
    if name != LATEST:
        return _named(archive, recording, name)
    why: list[str] = []
    others = 0
    for run, facts in _newest_first(archive, recording, why):
        if str(facts.get("bench", "")) != str(recording.facts.get("bench", "")):
            others += 1
            continue
        try:
            reasons = _against(recording, run, facts)
        except OF_ANOTHER_SHAPE as error:
            reasons = (say("damaged: {kind}: {error}", kind=type(error).__name__, error=error),)
        if not reasons:
            try:
                found = open_recording(run)
            except RecordingError as error:
                reasons = (error.seen,)
            else:
                reasons = not_comparable(comparable_facts(recording), comparable_facts(found)) or _own_faults(found)
                if not reasons:
                    return Earlier(name=name, recording=found, why=tuple(why))
        why.append(say("{run_name}: {names}", run_name=run.name, names=joined("; ", reasons)))
    if others:
        why.append(
            say("1 run of other benches") if others == 1 else say("{others} runs of other benches", others=others)
        )
    return Earlier(
        name=name,
        recording=None,
        why=tuple(why) or (say("{archive} holds no earlier run of this bench", archive=archive),),
    )


def _named(archive: Path, recording: Recording, name: str) -> Earlier:
    path = archive / name if (archive / name).exists() else Path(name)
    try:
        found = open_recording(path)
    except RecordingError as error:
        return Earlier(name=name, recording=None, why=(error.seen,))
    if _same(found.path, recording.path):
        return Earlier(name=name, recording=None, why=(say("that is this very run"),))
    why = not_comparable(comparable_facts(recording), comparable_facts(found)) or why_no_measure(found)
    return Earlier(name=name, recording=found, why=why)


def _newest_first(archive: Path, recording: Recording, why: list[str]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Runs that began before this one; those that cannot be read are told."""
    start = recording.facts.get("start_seconds") or recording.start_seconds
    found: list[tuple[float, Path, Mapping[str, Any]]] = []
    for file in sorted(archive.glob(f"*/{RUN}")):
        if _same(file.parent, recording.path):
            continue
        try:
            facts = read_run_json(file.parent)
            began = float(facts["start_seconds"])
        except RecordingError as error:
            why.append(say("{parent_name}: {seen}", parent_name=file.parent.name, seen=error.seen))
        except (KeyError, TypeError, ValueError):
            why.append(say("{parent_name}: does not say when it began", parent_name=file.parent.name))
        else:
            if not recording.absolute_time or start is None or began < float(start):
                found.append((began, file.parent, facts))
    for _, run, told in sorted(found, key=lambda one: (one[0], one[1].name), reverse=True):
        yield run, told


def why_no_measure(recording: Recording) -> tuple[str, ...]:
    """Why a run is no measure for others whatever was recorded: it was cut off, or what a rise is made of was."""
    lasted = {str(phase.name): phase.duration_seconds for phase in recording.phases}
    return _unfinished(recording.state) or why_not_whole(lasted, plan_of(recording.facts), NEEDED)


def _unfinished(state: str) -> tuple[str, ...]:
    return () if state in (FINISHED, FOREIGN) else (say("it is not finished: {state}", state=STATES.get(state, state)),)


def _against(recording: Recording, run: Path, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Why a run is not the one, from what its ``run.json`` says: its samples need not be read for that."""
    lasted = lengths_of(facts)
    reasons = _unfinished(state_of(run, facts)) or why_not_whole(lasted, {}, NEEDED)
    if reasons:
        return reasons
    sensors = []
    for data in facts.get("sensors", []):
        try:
            sensors.append(sensor_from_json(data))
        except ValueError as error:
            return (str(error),)
    reasons = not_comparable(comparable_facts(recording), facts_of(facts, sensors))
    return reasons or why_not_whole(lasted, plan_of(facts), NEEDED)


def _own_faults(found: Recording) -> tuple[str, ...]:
    """Why a run is no measure for others, from its summary: one that failed itself would let every drift pass."""
    findings = found.summary.get("findings") if found.summary is not None else None
    failed = {
        finding.get("check")
        for finding in (findings if isinstance(findings, list) else [])
        if isinstance(finding, Mapping) and finding.get("outcome") == Outcome.FAILED.value
    }
    told = [check for check in OF_HEAT if check in failed]
    return (say("it failed itself: {names}", names=joined(", ", told)),) if told else ()


def _same(one: Path, other: Path) -> bool:
    return one.absolute() == other.absolute()
