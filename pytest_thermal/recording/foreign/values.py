"""A column's cells → values of one sensor, put right where the rule is sure, and missing with a reason where not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pytest_thermal.model import Missing, Sensor, Unit
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.series import FloatArray
from pytest_thermal.recording.foreign.cells import Unitful, Value, cell_unit, value
from pytest_thermal.recording.foreign.notes import Notes
from pytest_thermal.sensors.plausibility import implausible

_MILLI = 10_000.0
"""No temperature in degrees and no power of one device in watts is as high; in thousandths it is 10 of them."""
_UNSURE = 1_000.0
_SOME = 0.05
_LOOKED_AT = 50
_FAILED = "0 is written for a failed read"


@dataclass(kw_only=True)
class Values:
    """Values of one sensor in row order, and why each missing one is."""

    sensor: Sensor
    numbers: FloatArray
    reasons: dict[int, tuple[Missing, str]] = field(default_factory=dict)

    def lose(self, index: int, reason: Missing, detail: str) -> None:
        """Make a value missing."""
        self.numbers[index] = np.nan
        self.reasons[index] = (reason, detail)


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A column to read, in parts where its name or unit changes on the way."""

    sensor: Sensor
    parts: Sequence[Part]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Cells of a column, by row: texts, or what is known of a cell already."""

    spelled: Unitful | None = None
    """The unit of cells that name none."""
    cells: Mapping[int, str | Value]


def read_values(column: Filled, lines: Sequence[int], notes: Notes) -> Values | None:
    """The values of one column, of which only some rows may have a cell; None where none is a figure."""
    sensor = column.sensor
    found = Values(sensor=sensor, numbers=np.full(len(lines), np.nan))
    has_units = [_fill(found, part) for part in column.parts]
    if not any(has_units) and not _scaled(found, lines, notes):
        return None
    # Of a log with a million rows few values differ.
    judged = {
        number: implausible(sensor, number) for number in np.unique(found.numbers[~np.isnan(found.numbers)]).tolist()
    }
    strange = [number for number, why in judged.items() if why]
    for index in np.flatnonzero(np.isin(found.numbers, strange)).tolist():
        number = float(found.numbers[index])
        if number == 0.0:
            found.lose(index, Missing.UNREADABLE, _FAILED)
            notes.add(f"{sensor.label}: {_FAILED}; taken as missing", lines[index])
        else:
            found.lose(index, Missing.IMPLAUSIBLE, f"raw {number:.12g}: {judged[number]}")
            text = f"{sensor.label}: {number:.12g} is implausible ({judged[number]}); taken as missing"
            notes.add(text, lines[index])
    for index, (missing, detail) in found.reasons.items():
        if missing is Missing.NOT_UNDERSTOOD:
            notes.add(f"{sensor.label}: {detail}: not understood, taken as missing", lines[index])
    return None if np.isnan(found.numbers).all() else found


def _fill(found: Values, part: Part) -> bool:
    """Read the cells; whether their unit is told."""
    known: dict[str, Value] = {}
    for index, cell in part.cells.items():
        if isinstance(cell, str) and cell not in known:
            known[cell] = value(cell, found.sensor.unit, part.spelled)
        number, missing, detail = known[cell] if isinstance(cell, str) else cell
        if missing is not None:
            found.reasons[index] = (missing, detail)
        elif number is not None:
            found.numbers[index] = number
    return part.spelled is not None or any(cell_unit(text) for text in list(known)[:_LOOKED_AT])


def lose_failed_rows(columns: Sequence[Values], lines: Sequence[int], notes: Notes) -> None:
    """Where a read failed, some loggers write 0 for everything: then a load of 0 % is none either."""
    failed = {index for one in columns for index, (_, detail) in one.reasons.items() if detail == _FAILED}
    for index in sorted(failed):
        rest = [one for one in columns if not np.isnan(one.numbers[index])]
        if rest and all(one.numbers[index] == 0.0 for one in rest):
            for one in rest:
                one.lose(index, Missing.UNREADABLE, _FAILED)
            notes.add("every figure is 0, as after a failed read: taken as missing", lines[index])


def _scaled(found: Values, lines: Sequence[int], notes: Notes) -> bool:
    """Find out whether a column without a unit is in thousandths; False where that cannot be told."""
    unit = found.sensor.unit
    if unit is not Unit.CELSIUS and not (unit is Unit.WATTS and kind_of(found.sensor.device) is not Kind.OTHER):
        return True
    magnitude = np.abs(found.numbers)
    given = np.count_nonzero(magnitude > 0)
    if not given:
        return True
    high = magnitude >= _MILLI
    between = (magnitude >= _UNSURE) & ~high
    low = (magnitude > 0) & (magnitude < _UNSURE)
    milli = "millidegrees" if unit is Unit.CELSIUS else "milliwatts"
    ours = "degrees" if unit is Unit.CELSIUS else "watts"
    if np.count_nonzero(high) <= _SOME * given:
        if unit is Unit.CELSIUS and np.count_nonzero(between) > _SOME * given:
            seen = float(np.median(magnitude[between]))
            notes.add(
                f"{found.sensor.label}: figures such as {seen:g} may be hundredths or thousandths of a degree: left out"
            )
            return False
        return True
    notes.add(f"{found.sensor.label}: in {milli}")
    both = np.count_nonzero(low) > _SOME * given
    if both:
        notes.add(f"{found.sensor.label}: in {ours} instead, from here", int(np.array(lines)[low][0]))
    in_milli = high | between
    found.numbers[in_milli] /= 1000.0
    if not both:
        for index in np.flatnonzero(low):
            low_one = f"{found.numbers[index]:g}"
            found.lose(int(index), Missing.NOT_UNDERSTOOD, f"raw '{low_one}' among {milli}")
    return True
