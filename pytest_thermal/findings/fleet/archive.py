"""What lies below a folder of runs: which nodes there are, the newest run of each, and what is history.

Reads ``run.json`` alone. One folder is looked into after the other, and a run's own files are never listed.
"""

from __future__ import annotations

import calendar
import contextlib
import math
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_thermal.findings.run_facts import machine_of, node_of_facts
from pytest_thermal.findings.subjects import natural, subjects
from pytest_thermal.model import Sensor
from pytest_thermal.model.said import say
from pytest_thermal.recording import RecordingError, open_recording
from pytest_thermal.recording.layout import RUN, SAMPLES, read_run_json
from pytest_thermal.recording.run_state import state_of
from pytest_thermal.recording.words import sensor_from_json

_OF_A_RUN = re.compile(r"\d{8}T\d{6}Z_(?P<host>.+?)(?:-\d+)?")
"""The name of a run directory: when it began, and on which host."""
_UNIQUE = re.compile(r"(?:GPU-|MIG-)?[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
"""A UUID; a number or an address on a bus is the same in every machine."""
MOST_COUNTED = 100_000
COMPARED = "settled"
"""The check whose subjects are compared between nodes: every heated temperature, but single cores of a processor."""


@dataclass(frozen=True, kw_only=True)
class FoundRun:
    """A run directory, or a log that is named after its host."""

    path: Path
    node: str
    start_seconds: float | None = None
    """Unix time; None where it does not say."""
    end_seconds: float | None = None
    state: str = ""
    machine: str = ""
    """What tells two machines of one name apart; empty where nothing does."""
    sensors: tuple[str, ...] = ()
    """Ids of the temperatures that are compared."""
    together: tuple[str, ...] = ()
    """Names of the nodes that it was made together with, its own too."""
    count: int = 0
    """How many nodes these were; 0 where it was alone."""
    cards: frozenset[str] = frozenset()
    """What tells its accelerators from all others in the world; empty where nothing does."""
    is_log: bool = False
    trouble: str = ""
    """Why it cannot be read."""


@dataclass(frozen=True, kw_only=True)
class NodeRuns:
    """The runs of one node, the newest apart from its history."""

    name: str
    newest: FoundRun | None
    """None: it is expected, and has no run here."""
    history: tuple[FoundRun, ...] = ()
    """Earlier ones of the same machine, the newest first."""
    notes: tuple[str, ...] = ()
    expected_by: str = ""
    """Where it says that this node belongs to the fleet; empty where only its run does."""


@dataclass(frozen=True, kw_only=True)
class Roster:
    """Every node of a fleet: those with runs, and those that are expected."""

    folder: Path
    nodes: Mapping[str, NodeRuns] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def sensors(self) -> tuple[str, ...]:
        """Ids of all temperatures that are compared, in the order in which a reader wants them."""
        known = {name for node in self.nodes.values() if node.newest is not None for name in node.newest.sensors}
        return tuple(sorted(known, key=natural))


def find_fleet(folder: Path, *, expected: Mapping[str, str], count: int = 0, counted_by: str = "") -> Roster:
    """The nodes whose runs lie below a folder, and those that are expected.

    Args:
        folder: Run directories at any depth below it, and CSV files named after their host.
        expected: Host → where it says that it belongs to the fleet.
        count: How many nodes there are, where that is known and their names are not; 0: nobody says.
        counted_by: Who says that.

    Of nodes that are only counted, each that is not there stands for itself, as ``unnamed-1`` and so on.
    """
    notes: list[str] = []
    by_node: dict[str, list[FoundRun]] = {}
    for found in _runs(folder, notes):
        by_node.setdefault(found.node, []).append(found)
    for host in _without_runs(folder, [found for runs in by_node.values() for found in runs]):
        expected = {host: say("its folder in the archive"), **expected}
    known = {name: list(_machines(name, runs)) for name, runs in by_node.items()}
    wanted = dict(expected)
    for one in (found for told in known.values() for found in told):
        for other in one.newest.together if one.newest is not None else ():
            wanted.setdefault(other, say("the run of {node}, which was to be made together with it,", node=one.name))
    nodes: dict[str, NodeRuns] = {}
    for name in sorted({*known, *wanted}, key=natural):
        expected_by = wanted.get(name, "")
        for one in known.get(name) or [NodeRuns(name=name, newest=None)]:
            nodes[one.name] = replace(one, expected_by=expected_by)
    counts = [(count, counted_by)]
    counts += [
        (one.newest.count, say("the run of {node}, which was to be made together with others,", node=name))
        for name, one in nodes.items()
        if one.newest is not None
    ]
    most, by = max(counts)
    for number in range(1, most - len(nodes) + 1):
        nodes[f"unnamed-{number}"] = NodeRuns(name=f"unnamed-{number}", newest=None, expected_by=by)
    return Roster(folder=folder, nodes=nodes, notes=tuple(notes))


def _runs(folder: Path, notes: list[str]) -> Iterator[FoundRun]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        notes.append(say("{folder}: cannot be read: {error}", folder=folder, error=error.strerror))
        return
    names = {entry.name for entry in entries}
    # One that is called as a run and holds none was copied in part, or its node died at once: it must be missed.
    inside = {entry.name for entry in entries if entry.is_dir()} - {SAMPLES}
    if RUN in names or (_OF_A_RUN.fullmatch(folder.name) and not inside):
        yield _run(folder)
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():  # also through a link: archives are put together so
            yield from _runs(Path(entry.path), notes)
        elif entry.name.lower().endswith(".csv"):
            yield _log(Path(entry.path))


def _without_runs(folder: Path, runs: Sequence[FoundRun]) -> Iterator[str]:
    """Hosts whose own folder holds no run.

    A folder is a host's by two signs of three: it is empty, the folders beside it are named after their nodes, or it is
    named as the nodes are but for their numbers. What else lies beside runs is nobody's business here.
    """
    if any(found.path == folder for found in runs):
        return
    named = [found for found in runs if found.path.parent != folder and not found.is_log]
    after_node = bool(named) and all(_top(folder, found.path) == found.node for found in named)
    held = {_top(folder, found.path) for found in runs}
    shapes = {_shape(found.node) for found in runs}
    with contextlib.suppress(OSError):
        for entry in sorted(folder.iterdir()):
            if entry.name in held or entry.name.startswith(".") or not entry.is_dir():
                continue
            signs = (after_node, _shape(entry.name) in shapes, not any(entry.iterdir()))
            if sum(signs) >= 2:
                yield entry.name


def _top(folder: Path, path: Path) -> str:
    return path.relative_to(folder).parts[0]


def _shape(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _run(path: Path) -> FoundRun:
    match = _OF_A_RUN.fullmatch(path.name)
    by_name = match["host"] if match else path.name
    try:
        facts = read_run_json(path)
    except RecordingError as error:
        return FoundRun(path=path, node=by_name, start_seconds=_stamp(path.name), trouble=error.seen)
    return FoundRun(
        path=path,
        node=node_of_facts(facts) or by_name,
        start_seconds=_number(facts.get("start_seconds")),
        end_seconds=_number(facts.get("end_seconds")),
        state=state_of(path, facts),
        machine=machine_of(facts),
        sensors=compared(_sensors(facts)),
        together=_together(facts),
        count=_count(facts),
        cards=frozenset(one.identity for one in _sensors(facts) if _UNIQUE.fullmatch(one.identity)),
    )


def _together(facts: Mapping[str, Any]) -> tuple[str, ...]:
    told = facts.get("together")
    names = told.get("names") if isinstance(told, Mapping) else None
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _count(facts: Mapping[str, Any]) -> int:
    told = facts.get("together")
    count = told.get("count") if isinstance(told, Mapping) else None
    return count if isinstance(count, int) and 0 < count < MOST_COUNTED else 0


def _log(path: Path) -> FoundRun:
    try:
        recording = open_recording(path)
    except RecordingError as error:
        return FoundRun(path=path, node=path.stem, is_log=True, trouble=error.seen)
    start = recording.start_seconds if recording.absolute_time else None
    end = recording.end_seconds if recording.absolute_time else None
    return FoundRun(
        path=path,
        node=path.stem,
        start_seconds=start,
        end_seconds=end,
        state=recording.state,
        sensors=compared([one.sensor for one in recording.series.values()]),
        is_log=True,
    )


def compared(sensors: Sequence[Sensor]) -> tuple[str, ...]:
    """Ids of the temperatures that nodes are compared by."""
    return subjects(COMPARED, sensors, inference=False)


def _sensors(facts: Mapping[str, Any]) -> list[Sensor]:
    found = []
    told = facts.get("sensors")
    for data in told if isinstance(told, list) else []:
        try:
            found.append(sensor_from_json(data))
        except ValueError:
            continue  # told of when the run is read
    return found


def _machines(name: str, runs: Sequence[FoundRun]) -> Iterator[NodeRuns]:
    """The newest run of a name and what is history; machines that ran at one time are several nodes of one name.

    A run whose ``run.json`` cannot be read is as new as its folder's name says.
    """
    ordered = sorted(runs, key=lambda run: (run.start_seconds or -math.inf, run.path.name), reverse=True)
    lines: list[list[FoundRun]] = []
    for run in ordered:
        home = next((line for line in lines if not _beside(line, run)), None)
        if home is None:
            lines.append([run])
        else:
            home.append(run)
    for number, (newest, *history) in enumerate(lines, 1):
        own = name if number == 1 else f"{name}~{number}"
        notes = []
        if len(lines) > 1:
            notes.append(
                say(
                    "{count} machines called {name} ran at one time: this is {run}; each is a node of its own here, "
                    "and should have a name of its own",
                    count=len(lines),
                    name=name,
                    run=newest.path.name,
                )
            )
        same = [run for run in history if not _differs(newest, run)]
        others = [run for run in history if _differs(newest, run)]
        if same:
            notes.append(say("the newest of {count} runs counts; the others are history", count=len(same) + 1))
        if others:
            first = others[0].path.name
            notes.append(
                say("1 earlier run under this name was made on another machine ({run})", run=first)
                if len(others) == 1
                else say(
                    "{count} earlier runs under this name were made on another machine ({run})",
                    count=len(others),
                    run=first,
                )
            )
        yield NodeRuns(name=own, newest=newest, history=tuple(same), notes=tuple(notes))


def _beside(line: Sequence[FoundRun], run: FoundRun) -> bool:
    """Whether a run went on at the same time as one of a line: one machine makes one run at a time."""
    return any(_overlaps(other, run) for other in line)


def _overlaps(one: FoundRun, other: FoundRun) -> bool:
    if None in (one.start_seconds, one.end_seconds, other.start_seconds, other.end_seconds):
        return False
    begin = max(one.start_seconds or 0.0, other.start_seconds or 0.0)
    end = min(one.end_seconds or 0.0, other.end_seconds or 0.0)
    # A copy of a run is that run: it overlaps wholly, to the millisecond.
    same = one.start_seconds == other.start_seconds and one.end_seconds == other.end_seconds
    return begin < end and not (same and one.machine == other.machine)


def _differs(one: FoundRun, other: FoundRun) -> bool:
    return bool(one.machine and other.machine and one.machine != other.machine)


def _stamp(name: str) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(name[:16], "%Y%m%dT%H%M%SZ")))
    except ValueError:
        return None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
