"""A sensor that says when it was read, and has not been read for long, gives an old value and not a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_thermal.model import Missing, Reading
from pytest_thermal.model.said import say

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
        ago = now - before.since
        return [
            one
            if one.value is None
            else replace(one, value=None, missing=Missing.STUCK, detail=_stood(one.value, time, ago))
            for one in readings
        ]


def _stood(value: float, time: str, ago_seconds: float) -> str:
    return say(
        "raw {value:g}: the BMC read it last at {time}, {seconds:.0f} s ago",
        value=value,
        time=time[:40],
        seconds=ago_seconds,
    )
