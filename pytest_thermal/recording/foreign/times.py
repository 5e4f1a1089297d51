"""The time column of a log → seconds that only go forward, with every repair said."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pytest_thermal.model.series import BoolArray, FloatArray
from pytest_thermal.recording.foreign.cells import plain_number
from pytest_thermal.recording.foreign.notes import Notes

_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,:](?P<fraction>\d{1,9}))?)?"
_HALF = r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?"
_ZONE = r"\s*(?P<zone>Z|UTC|GMT|[-+]\d{2}:?\d{2}|[-+]\d{2})?"
_DATE = (
    r"(?:(?P<first>\d{1,4})(?P<mark>[-/.])(?P<middle>\d{1,2})(?P=mark)(?P<last>\d{1,4})\.?"
    r"|(?P<year>20\d\d)(?P<month>\d\d)(?P<day>\d\d))"
)
_STAMP = re.compile(rf"{_DATE}(?:[T ,_]\s*|\s+){_CLOCK}{_HALF}{_ZONE}")
_CLOCK_ALONE = re.compile(rf"{_CLOCK}{_HALF}:?")
_DATE_ALONE = re.compile(_DATE)
_DAY_SECONDS = 86400.0
_HOUR_SECONDS = 3600.0
_FIRST_UNIX = 978_307_200.0  # 2001: no log is older, and clocks that were never set begin in 1970 or 2000
_LAST_UNIX = 4_102_444_800.0  # 2100
_SCALES = ((1.0, "seconds"), (1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds"))


class Clock(NamedTuple):
    """The times of some rows."""

    seconds: FloatArray
    """Shape (rows,), NaN where a cell is no time."""
    absolute: bool
    """Whether these are unix time."""
    local: bool
    """Whether they were read from a local time whose zone is not known."""


def is_date(text: str) -> bool:
    """Whether a cell is a date and nothing else."""
    return _DATE_ALONE.fullmatch(text) is not None


def is_clock(text: str) -> bool:
    """Whether a cell is a time of day and nothing else."""
    return _CLOCK_ALONE.fullmatch(text) is not None


def is_stamp(text: str) -> bool:
    """Whether a cell is a date with a time of day."""
    return _STAMP.fullmatch(text) is not None


def is_time(text: str) -> bool:
    """Whether a cell could be a time: a stamp, a time of day, or a number of seconds of our age."""
    number = plain_number(text)
    if number is not None:
        return any(_FIRST_UNIX <= number / scale <= _LAST_UNIX for scale, _ in _SCALES)
    return is_stamp(text) or is_clock(text)


def read_times(cells: Sequence[str], zone: dt.tzinfo | None, notes: Notes, *, scale: float = 1.0) -> Clock | None:
    """Seconds of each cell; None where most of them are no times.

    Times without a zone are taken as UTC, or as of ``zone``; ``scale`` is what one of a number that only counts is in
    seconds.
    """
    numbers = [plain_number(cell) for cell in cells]
    if sum(number is not None for number in numbers) > len(cells) / 2:
        return _numbers(np.array([np.nan if n is None else n for n in numbers], dtype=np.float64), scale, notes)
    if sum(map(is_stamp, cells)) > len(cells) / 2:
        return _stamps(cells, zone, notes)
    if sum(map(is_clock, cells)) > len(cells) / 2:
        notes.add("times without a date: they count from midnight of an unknown day")
        matches = [_CLOCK_ALONE.fullmatch(cell) for cell in cells]
        return Clock(
            np.array([np.nan if match is None else _of_day(match) for match in matches]), absolute=False, local=True
        )
    return None


def _numbers(numbers: FloatArray, scale: float, notes: Notes) -> Clock:
    middle = float(np.nanmedian(numbers))
    for divisor, name in _SCALES:
        if _FIRST_UNIX <= middle / divisor <= _LAST_UNIX:
            if divisor != 1.0:
                notes.add(f"times are unix {name}")
            return Clock(_of_our_age(numbers / divisor), absolute=True, local=False)
    notes.add("times only count seconds from a start that is not told")
    return Clock(numbers * scale, absolute=False, local=False)


def _of_our_age(seconds: FloatArray) -> FloatArray:
    """Without what is no unix time: glued or cut figures. Small ones count at the start, before the clock was set."""
    with np.errstate(invalid="ignore"):
        good = (seconds >= _FIRST_UNIX) & (seconds <= _LAST_UNIX)
        first = int(np.argmax(good))
        unset = np.zeros(seconds.size, dtype=np.bool_)
        unset[:first] = (seconds[:first] >= 0) & (seconds[:first] < _FIRST_UNIX)
    return np.where(good | unset, seconds, np.nan)


def _of_day(match: re.Match[str]) -> float:
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"] in "Pp" else 0)
    fraction = float(f"0.{match['fraction']}") if match["fraction"] else 0.0
    return hour * _HOUR_SECONDS + int(match["minute"]) * 60 + int(match["second"] or 0) + fraction


def _stamps(cells: Sequence[str], zone: dt.tzinfo | None, notes: Notes) -> Clock:
    matches = [_STAMP.fullmatch(cell) for cell in cells]
    days = _days([match for match in matches if match and match["first"]], notes)
    seconds = np.full(len(cells), np.nan)
    local = False
    for index, match in enumerate(matches):
        day = None if match is None else _day(match, days)
        if match is None or day is None:
            continue
        moment = (day - dt.date(1970, 1, 1)).days * _DAY_SECONDS + _of_day(match)
        if match["zone"]:
            moment -= _offset_seconds(match["zone"])
        elif zone is not None:
            there = dt.datetime.fromtimestamp(moment, dt.timezone.utc).replace(tzinfo=zone)
            moment -= (there.utcoffset() or dt.timedelta()).total_seconds()
            local = True
        else:
            local = True
        seconds[index] = moment
    if local and zone is None:
        notes.add("times have no zone and are taken as UTC")
    return Clock(seconds, absolute=True, local=local)


def _offset_seconds(zone: str) -> float:
    if zone in {"Z", "UTC", "GMT"}:
        return 0.0
    digits = zone[1:].replace(":", "")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * _HOUR_SECONDS + int(digits[2:] or 0) * 60)


def _day(match: re.Match[str], days: Callable[[re.Match[str]], dt.date | None]) -> dt.date | None:
    return _date(match["year"], match["month"], match["day"]) if match["year"] else days(match)


def _days(matches: Sequence[re.Match[str]], notes: Notes) -> Callable[[re.Match[str]], dt.date | None]:
    """How to read this log's dates: year first, or day and month in the order that fits all of them."""

    def year_first(match: re.Match[str]) -> dt.date | None:
        return _date(match["first"], match["middle"], match["last"])

    def day_first(match: re.Match[str]) -> dt.date | None:
        return _date(match["last"], match["middle"], match["first"])

    def month_first(match: re.Match[str]) -> dt.date | None:
        return _date(match["last"], match["first"], match["middle"])

    if not matches or any(len(match["first"]) == 4 for match in matches):
        return year_first
    fits = [order for order in (day_first, month_first) if all(order(match) is not None for match in matches)]
    if len(fits) < 2:
        return fits[0] if fits else day_first
    if {match["mark"] for match in matches} == {"."}:
        return day_first
    spans = [len({order(match) for match in matches}) and _span(order, matches) for order in fits]
    best = fits[int(np.argmin(spans))]
    name = "day/month" if best is day_first else "month/day"
    notes.add(f"dates such as {matches[0]['first']}/{matches[0]['middle']} are taken as {name}")
    return best


def _span(order: Callable[[re.Match[str]], dt.date | None], matches: Sequence[re.Match[str]]) -> int:
    days = [day.toordinal() for day in map(order, matches) if day is not None]
    return max(days) - min(days)


def _date(year: str, month: str, day: str) -> dt.date | None:
    try:
        return dt.date(int(year) + (2000 if len(year) <= 2 else 0), int(month), int(day))
    except ValueError:
        return None


class Steady(NamedTuple):
    """Times that only go forward."""

    seconds: FloatArray
    keep: BoolArray
    """Which of the rows given are kept."""


def made_steady(clock: Clock, lines: Sequence[int], notes: Notes, *, say_repeats: bool = True) -> Steady:
    """Put right what clocks do: midnight, the hours of summer time, a clock that was set, repeated stamps."""
    seconds = clock.seconds.copy()
    keep = np.isfinite(seconds)
    where = np.flatnonzero(keep)
    for index in np.flatnonzero(~keep):
        notes.add("no time that can be read: left out", lines[index])
    if where.size < 2:
        return Steady(seconds, keep)
    strange = _strange(seconds[where])
    for index in where[strange]:
        notes.add("a time far from those of the rows around it: left out", lines[index])
    keep[where[strange]] = False
    where = where[~strange]
    seconds[where] = _forward(seconds[where], clock, [lines[index] for index in where], notes)
    repeated = np.zeros(seconds.size, dtype=np.bool_)
    repeated[where[1:]] = np.diff(seconds[where]) <= 0
    if say_repeats:
        for index in np.flatnonzero(repeated):
            notes.add("the same time as the row before: left out", lines[index])
    return Steady(seconds, keep & ~repeated)


def _strange(seconds: FloatArray) -> BoolArray:
    """Single rows far out of line, while those before and after them are in order: no clock was set there."""
    strange = np.zeros(seconds.size, dtype=np.bool_)
    steps = np.diff(seconds)
    forward = steps[steps > 0]
    far = max(60.0, 20 * float(np.median(forward))) if forward.size else 60.0
    for index in np.flatnonzero(steps < -far):
        # The one before the step back is too high, or the one behind it too low.
        if index > 0 and seconds[index - 1] < seconds[index + 1]:
            strange[index] = True
        elif index + 2 < seconds.size and seconds[index] < seconds[index + 2]:
            strange[index + 1] = True
    return strange


def _forward(seconds: FloatArray, clock: Clock, lines: Sequence[int], notes: Notes) -> FloatArray:
    steps = np.diff(seconds)
    forward = steps[steps > 0]
    period = float(np.median(forward)) if forward.size else 1.0
    slack = max(2 * period, 2.0)
    for index in np.flatnonzero(_odd(steps, clock, period)):
        step, line = steps[index], lines[index + 1]
        if not clock.absolute and clock.local and step < -_DAY_SECONDS / 2:
            steps[index] = step + _DAY_SECONDS
            notes.add("midnight: the times go on", line)
        elif clock.local and clock.absolute and abs(step + _HOUR_SECONDS) <= slack:
            steps[index] = step + _HOUR_SECONDS
            notes.add("the clock goes back by an hour, as at the end of summer time: the times go on", line)
        elif clock.absolute and step > 0:
            if _is_spring(seconds[index], step, period, clock):
                steps[index] = step - _HOUR_SECONDS
                notes.add("the clock goes forward by an hour, as at the start of summer time: the times go on", line)
            elif seconds[index] < _FIRST_UNIX <= seconds[index + 1]:
                steps[index] = period
                notes.add("the clock had not been set before: the times go on", line)
        elif step < 0:
            steps[index] = period
            notes.add(f"the clock goes back by {-step:.4g} s: the times go on one step later", line)
    if not clock.absolute:
        return np.concatenate((seconds[:1], seconds[0] + np.cumsum(steps)))
    # Anchored at the end: a clock that is set is right afterwards.
    return np.concatenate((seconds[-1] - np.cumsum(steps[::-1])[::-1], seconds[-1:]))


def _odd(steps: FloatArray, clock: Clock, period: float) -> BoolArray:
    odd: BoolArray = steps < 0
    if clock.absolute:
        odd = odd | (steps > _HOUR_SECONDS - period)
    return odd


def _is_spring(before: float, step: float, period: float, clock: Clock) -> bool:
    """An hour and a step, from just before a full hour: no pause of the logger would fall exactly there."""
    to_full_hour = _HOUR_SECONDS - before % _HOUR_SECONDS
    return clock.local and abs(step - _HOUR_SECONDS - period) <= 0.5 * period and to_full_hour <= 1.5 * period
