"""A sensor that says when it was read, and has not been read for long, gives an old value and not a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_thermal.model import Missing, Reading

STANDS_SECONDS = 60.0
STANDS_READINGS = 5


@dataclass
class _Followed:
    time: str
    since: float
    readings: int
    values: tuple[float | None, ...]
    is_of_reading: bool = False
    """Whether the time went on while the value stayed: then it is that of the reading, and not of the last change."""


class ReadingTimes:
    """Follows each thing's ``ReadingTime``. Some services set it only when the value changes: there it says nothing."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}

    def checked(self, identity: str, time: object, readings: Sequence[Reading], now: float) -> list[Reading]:
        """The readings; missing as stuck where their time stands still for a minute and five readings."""
        if not isinstance(time, str) or not time:
            return list(readings)
        values = tuple(one.value for one in readings)
        before = self._followed.get(identity)
        if before is None or before.time != time:
            same = before is not None and before.values == values
            went_on = before is not None and (before.is_of_reading or same)
            self._followed[identity] = _Followed(time=time, since=now, readings=1, values=values, is_of_reading=went_on)
            return list(readings)
        before.readings += 1
        if not before.is_of_reading or before.readings <= STANDS_READINGS or now - before.since < STANDS_SECONDS:
            return list(readings)
        why = f"the BMC read it last at {time[:40]}, {now - before.since:.0f} s ago"
        return [
            one
            if one.value is None
            else replace(one, value=None, missing=Missing.STUCK, detail=f"raw {one.value:g}: {why}")
            for one in readings
        ]
