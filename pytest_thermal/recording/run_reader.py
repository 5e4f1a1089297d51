"""Reading a run directory, at any time: while it is being recorded, after its end, after a kill or a power cut."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pytest_thermal.model import Missing, Sensor, Unit
from pytest_thermal.model.phases import PHASES
from pytest_thermal.model.said import unpacked
from pytest_thermal.model.series import FloatArray, Phase, Series
from pytest_thermal.recording.errors import RunDirectoryError
from pytest_thermal.recording.layout import (
    EVENTS,
    MISSING,
    OWN,
    REQUESTS,
    RUN,
    SAMPLES,
    SEAL,
    SUMMARY,
    contents,
    own_checksum,
    read_run_json,
    sha256,
)
from pytest_thermal.recording.plausible import only_plausible
from pytest_thermal.recording.recording import Event, MissingStretch, Recording, Requests, Timing
from pytest_thermal.recording.request_table import parse_requests
from pytest_thermal.recording.run_state import CUT_OFF, FINISHED, RECORDING, state_of
from pytest_thermal.recording.sample_table import Block, DamagedError, parse_table
from pytest_thermal.recording.words import sensor_from_json
from pytest_thermal.sensors.plausibility import plausible_limits

OF_ANOTHER_SHAPE = (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError)
"""What a reader runs into where a file is JSON, and not ours."""
_SEGMENT = re.compile(r"(?P<source>.+?)(?:\.(?P<number>\d+))?")
_DEVICE = re.compile(r"[a-z_]+\d*")


def read_run(path: Path, *, verify: bool = True, samples: bool = True) -> Recording:
    """Everything a run directory holds; without ``samples`` all but these, for whoever trusts its summary.

    Whatever had to be corrected or left out is in the notes. With ``verify`` that includes files that changed since
    the run was sealed.

    Raises:
        RunDirectoryError: The folder is no run, of a newer format, or so damaged that reading on would be guessing.
    """
    path = path.parent if path.name == "run.json" else path
    facts = read_run_json(path)
    try:
        return _read(path, facts, verify=verify, samples=samples)
    except OSError as error:
        raise RunDirectoryError(
            f"{error.filename or path}: cannot be read: {error.strerror or error}",
            remedy="run as the user who recorded it, or copy the run anew",
        ) from error
    except OF_ANOTHER_SHAPE as error:
        raise RunDirectoryError(
            f"{path}: damaged: {type(error).__name__}: {error}",
            likely="run.json was edited by hand, or is of another program",
            remedy="restore it from a backup; the samples can still be judged one by one: --replay "
            f"{path / SAMPLES / '<source>.csv'}",
        ) from error


def _read(path: Path, facts: Mapping[str, Any], *, verify: bool, samples: bool) -> Recording:
    notes: list[str] = []
    state = state_of(path, facts)
    if state == CUT_OFF and facts.get("state") == RECORDING:
        notes.append("run.json: the recorder never noted its end: it was killed, or the machine went down")
    implausible: list[MissingStretch] = []
    series, timing = _samples(path, facts, notes, implausible) if samples else ({}, {})
    missing = sorted([*_missing(path, notes), *implausible], key=lambda stretch: stretch.time_seconds)
    recording = Recording(
        path=path,
        state=state,
        series=series,
        phases=(),
        notes=(),
        missing=tuple(missing),
        events=tuple(_events(path, notes)),
        requests=_requests(path, notes),
        timing=timing,
        facts=facts,
        summary=_summary(path, notes),
    )
    phases = tuple(_phases(facts, recording.end_seconds, notes))
    is_sealed = state == FINISHED or (state == CUT_OFF and "sha256" in facts)
    changed = tuple(_changed(path, facts)) if verify and is_sealed else ()
    return Recording(**{**vars(recording), "phases": phases, "notes": (*notes, *changed), "changed": changed})


# ---------------------------------------------------------------------------------------------------------- samples


def _samples(
    path: Path, facts: Mapping[str, Any], notes: list[str], implausible: list[MissingStretch]
) -> tuple[dict[str, Series], dict[str, Timing]]:
    known = _known_sensors(facts, notes)
    sources: Mapping[str, Mapping[str, Any]] = facts.get("sources", {})
    series: dict[str, Series] = {}
    timing: dict[str, Timing] = {}
    for source, files in _files(path, sources).items():
        told = sources.get(source, {})
        blocks = [block for file in files for block in _blocks(path, file, notes)]
        time_seconds, columns = _joined(blocks, source, notes)
        period_seconds = _period_seconds(told, facts, time_seconds)
        for name, values in columns.items():
            if name.startswith(OWN):
                continue
            sensor = known.get((source, name)) or _guessed(name, source, notes)
            if sensor is None:
                continue
            good, strange = only_plausible(sensor, time_seconds, values)
            if strange:
                notes.append(f"{name}: {strange[0].detail}; such readings are taken as missing")
                implausible += strange
            found = Series(sensor=sensor, time_seconds=time_seconds, values=good, period_seconds=period_seconds)
            series[name] = _better(series.get(name), found, notes)
        nothing = np.full(time_seconds.size, np.nan)
        timing[source] = Timing(
            source=source,
            time_seconds=time_seconds,
            lateness_ms=columns.get(f"{OWN}{source}.lateness_milliseconds", nothing),
            read_ms=columns.get(f"{OWN}{source}.read_milliseconds", nothing),
            period_seconds=period_seconds,
            reason=str(told.get("reason", "")),
            missed=told.get("missed"),
            priority=str(told.get("priority", "")),
        )
    for sensor in known.values():
        if sensor.id not in series:  # its file is gone; it is asked for all the same
            series[sensor.id] = Series(
                sensor=sensor,
                time_seconds=np.empty(0),
                values=np.empty(0),
                period_seconds=_period_seconds(sources.get(sensor.source, {}), facts, np.empty(0)),
            )
    return series, timing


def _known_sensors(facts: Mapping[str, Any], notes: list[str]) -> dict[tuple[str, str], Sensor]:
    known = {}
    for data in facts.get("sensors", []):
        try:
            sensor = sensor_from_json(data)
        except ValueError as error:
            notes.append(f"run.json: {error}")
        else:
            limits = plausible_limits(sensor.unit, sensor.limits)
            known[sensor.source, sensor.id] = replace(sensor, limits=limits)
    return known


def _files(path: Path, sources: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Segments by source, in order; also those that run.json had no time to mention."""
    owner = {str(segment["file"]): source for source, told in sources.items() for segment in told.get("segments", [])}
    found: dict[str, list[tuple[int, str]]] = {}
    for file in sorted((path / SAMPLES).glob("*.csv")):
        match = _SEGMENT.fullmatch(file.stem)
        name = f"{SAMPLES}/{file.name}"
        if match is None:
            continue
        source = owner.get(name) or match["source"]
        found.setdefault(source, []).append((int(match["number"] or 1), name))
    return {source: [name for _, name in sorted(files)] for source, files in found.items()}


def _blocks(path: Path, file: str, notes: list[str]) -> Iterator[Block]:
    try:
        table = parse_table((path / file).read_bytes())
    except OSError as error:
        raise RunDirectoryError(f"{path / file}: cannot be read: {error.strerror}") from error
    except DamagedError as error:
        raise RunDirectoryError(
            f"{path / file}: damaged: {error}",
            likely="it was edited, or the disk lost part of it",
            remedy=f"take {file} out of the run to judge the rest without it",
        ) from error
    notes += [f"{file}: {remark}" for remark in table.remarks]
    yield from table.blocks


def _joined(blocks: list[Block], source: str, notes: list[str]) -> tuple[FloatArray, dict[str, FloatArray]]:
    """All blocks of a source on one time axis; a column is missing (NaN) where its device was not there."""
    names = list(dict.fromkeys(name for block in blocks for name in block.columns))
    if len(blocks) == 1:
        time_seconds, values = blocks[0].time_seconds, blocks[0].values
    else:
        time_seconds = np.concatenate([block.time_seconds for block in blocks]) if blocks else np.empty(0)
        values = np.full((time_seconds.size, len(names)), np.nan, order="F")
        row = 0
        for block in blocks:
            rows = slice(row, row := row + block.time_seconds.size)
            for index, name in enumerate(block.columns):
                values[rows, names.index(name)] = block.values[:, index]
    forward = np.ones(time_seconds.size, dtype=np.bool_)
    forward[1:] = time_seconds[1:] > np.maximum.accumulate(time_seconds)[:-1]
    if not forward.all():
        first = time_seconds[np.argmin(forward)]
        notes.append(
            f"{SAMPLES}/{source}: {np.count_nonzero(~forward)} rows go back in time or repeat one (the first at "
            f"{first:.3f}) and are left out"
        )
        time_seconds, values = time_seconds[forward], np.asfortranarray(values[forward])
    return time_seconds, {name: values[:, index] for index, name in enumerate(names)}


def _period_seconds(told: Mapping[str, Any], facts: Mapping[str, Any], time_seconds: FloatArray) -> float:
    for place in (told, facts.get("recorder", {})):
        period = place.get("period_seconds")
        if isinstance(period, (int, float)) and math.isfinite(period) and period > 0:
            return float(period)
    return float(np.median(np.diff(time_seconds))) if time_seconds.size > 1 else 1.0


def _guessed(name: str, source: str, notes: list[str]) -> Sensor | None:
    """A sensor that only a CSV's header tells of, since the machine went down before run.json did."""
    unit = next((unit for unit in Unit if name.endswith((f"_{unit.value}", f".{unit.value}"))), None)
    device = name.partition(".")[0]
    if unit is None or not _DEVICE.fullmatch(device):
        notes.append(f"{SAMPLES}/{source}: column {name!r} is no sensor's id and is left out")
        return None
    notes.append(f"run.json: says nothing of {name}; taken from the header")
    return Sensor(id=name, unit=unit, device=device, identity=device, source=source)


def _better(first: Series | None, second: Series, notes: list[str]) -> Series:
    if first is None:
        return second
    best = max(first, second, key=lambda series: int(np.count_nonzero(series.present)))
    other = second if best is first else first
    notes.append(f"{best.sensor.id}: from {best.sensor.source}; {other.sensor.source} measured it too")
    return best


# -------------------------------------------------------------------------------------------------- everything else


def _phases(facts: Mapping[str, Any], end_seconds: float | None, notes: list[str]) -> Iterator[Phase]:
    for told in facts.get("phases", []):
        name, start, end = told.get("name"), told.get("start_seconds"), told.get("end_seconds")
        if name not in PHASES:
            notes.append(f"run.json: {name!r} is no phase and is left out")
            continue
        try:
            start = float(start)
            if end is None:
                end = max(start, math.nextafter(end_seconds, math.inf) if end_seconds is not None else start)
                notes.append(f"run.json: {name} has no end; taken up to the last sample")
            yield Phase(name=name, start_seconds=start, end_seconds=float(end))
        except (TypeError, ValueError):
            notes.append(f"run.json: {name} from {start!r} to {end!r} is no stretch of time and is left out")


def _lines(path: Path, notes: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a ``.jsonl`` file; a last line without an end is being written."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        if not line.strip(b"\0 \r"):
            continue
        try:
            data = json.loads(line)
            yield number, {**data, "time": float(data["time"])}
        except (ValueError, TypeError, KeyError):
            notes.append(f"{path.name}: line {number}: not understood, left out")


def _missing(path: Path, notes: list[str]) -> Iterator[MissingStretch]:
    reasons = {reason.value: reason for reason in Missing}
    for number, data in _lines(path / MISSING, notes):
        reason = reasons.get(str(data.get("reason")))
        if reason is None or "sensor" not in data:
            notes.append(f"{MISSING}: line {number}: not understood, left out")
            continue
        yield MissingStretch(
            time_seconds=data["time"],
            sensor_id=str(data["sensor"]),
            reason=reason,
            detail=str(data.get("detail", "")),
        )


def _events(path: Path, notes: list[str]) -> Iterator[Event]:
    for _, data in _lines(path / EVENTS, notes):
        detail = {name: value for name, value in data.items() if name not in {"time", "kind", "said"}}
        said = unpacked(data.get("said"))
        if isinstance(said, str) and said == detail.get("text"):
            detail["text"] = said
        yield Event(time_seconds=data["time"], kind=str(data.get("kind", "")), detail=detail)


def _summary(path: Path, notes: list[str]) -> dict[str, Any] | None:
    if not (path / SUMMARY).exists():
        return None
    try:
        data = json.loads((path / SUMMARY).read_bytes())
    except ValueError as error:
        notes.append(f"{SUMMARY}: damaged and left out: {error}")  # it only repeats what the samples say
        return None
    return data if isinstance(data, dict) else None


def _requests(path: Path, notes: list[str]) -> Requests | None:
    if not (path / REQUESTS).exists():
        return None
    requests, remarks = parse_requests((path / REQUESTS).read_bytes())
    notes += [f"{REQUESTS}: {remark}" for remark in remarks]
    return requests


def _changed(path: Path, facts: Mapping[str, Any]) -> Iterator[str]:
    if SEAL in facts and facts[SEAL] != own_checksum(facts):
        yield f"{RUN}: changed after the run was sealed"
    sums: Mapping[str, str] = facts.get("sha256", {})
    there = {file.relative_to(path).as_posix(): file for file in contents(path)}
    for name in sorted(sums.keys() - there.keys()):
        yield f"{name}: was there when the run was sealed and is gone"
    for name, file in there.items():
        if name not in sums:
            yield f"{name}: came after the run was sealed"
        elif sha256(file) != sums[name]:
            yield f"{name}: changed after the run was sealed"
