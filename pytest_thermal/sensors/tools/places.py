"""Where each sensor's figure stands: a field of a device's row, or of its card's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_thermal.model import Missing, Reading, Sensor
from pytest_thermal.sensors.plausibility import plausible_limits
from pytest_thermal.sensors.source import Absent
from pytest_thermal.sensors.sysfs.files import natural
from pytest_thermal.sensors.tools.answer import Raw, Row
from pytest_thermal.sensors.tools.devices import Device
from pytest_thermal.sensors.tools.figures import figure
from pytest_thermal.sensors.tools.tool import Field


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one sensor's figure stands in an answer."""

    sensor: Sensor
    device: Device
    field: Field
    names: tuple[str, ...]
    """The cell it was found in. Not another that the field may stand in as well: that may be another quantity."""

    def reading(self, row: Row) -> Reading:
        """The figure in ``row``, which is the device's."""
        sensor_id = self.sensor.id
        if row.fault:
            return Reading(sensor_id=sensor_id, missing=Missing.DEVICE_ERROR, detail=row.fault)
        raw = _cell(row, self.names)
        if raw is None:
            return Reading(sensor_id=sensor_id, missing=Missing.ABSENT, detail="not in the tool's answer")
        found = figure(raw, self.field.unit, assumed=self.field.scale)
        if found.value is None:
            return Reading(sensor_id=sensor_id, missing=found.missing, detail=found.detail)
        if found.value == 0.0 and self.field.zero_is_blank:
            return Reading(sensor_id=sensor_id, missing=Missing.NOT_OFFERED, detail="raw 0: there is no such sensor")
        return Reading(sensor_id=sensor_id, value=found.value)


def settle(
    source: str, fields: Sequence[Field], devices: Sequence[Device], rows: Mapping[str, Row], start: Mapping[str, Row]
) -> tuple[list[Place], list[Absent]]:
    """What the devices offer by their first answer, and what they say that they do not.

    ``rows`` are that answer's and ``start`` what was asked once, both by the device's key. A device at fault, or
    that has no row, is expected to offer what the others do.
    """
    places: dict[str, Place] = {}
    absent: dict[str, Absent] = {}
    for one in fields:
        offering = [device for device in devices if _cell(rows.get(device.key), one.names) is not None]
        for device in devices:
            if not offering or not _is_its_own(one, device, devices, rows):
                continue
            row = rows.get(device.key)
            names = stands_in(one, row)
            part = "" if one.of_card and len(_offering(one, device, devices, rows)) == 1 else device.part
            sensor = Sensor(
                id=f"{device.card}.{part}{one.quantity}",
                unit=one.unit,
                device=device.card,
                identity=device.identity,
                source=source,
                label=(row.text("name") if row and row.device else "") or names[0],
                limits=_limits(one, names, row, start.get(device.key)),
            )
            place = Place(sensor=sensor, device=device, field=one, names=(*names, *one.instead))
            reading = place.reading(row) if row and device in offering else None
            if row and row.left_out and device in offering:
                reading = Reading(sensor_id=sensor.id, missing=Missing.NOT_OFFERED, detail=row.left_out)
                absent.setdefault(sensor.id, Absent(sensor=sensor, reading=reading))
            elif reading and (reading.missing is Missing.NOT_OFFERED or _forbidden(reading)) and not _expected(row):
                absent.setdefault(place.sensor.id, Absent(sensor=place.sensor, reading=reading))
            elif device in offering or row is None or row.fault:
                places.setdefault(place.sensor.id, place)
    kept = sorted(places.values(), key=lambda place: (natural(place.sensor.identity), place.sensor.id))
    gone = sorted((one for name, one in absent.items() if name not in places), key=lambda one: natural(one.sensor.id))
    return kept, gone


def stands_in(one: Field, row: Row | None) -> tuple[str, ...]:
    """The cell that a field is read from: the first with a figure, else the first there is, else whichever comes.

    One that has neither a figure nor a word for none is damaged: what stands after it may be another quantity.
    """
    there = tuple(name for name in one.names if row and name in row.cells)
    for name in there:
        if row and figure(row.cells[name], one.unit, assumed=one.scale).missing is not Missing.NOT_OFFERED:
            return (name,)
    return there[:1] or one.names


def _is_its_own(one: Field, device: Device, devices: Sequence[Device], rows: Mapping[str, Row]) -> bool:
    """Whether a figure of that field would be this chip's: where one chip prints the card's, the others have none."""
    offering = _offering(one, device, devices, rows) if one.of_card else []
    return len(offering) != 1 or offering == [device]


def _offering(one: Field, device: Device, devices: Sequence[Device], rows: Mapping[str, Row]) -> list[Device]:
    """Of the device's card, what prints a figure of that field."""
    on_card = [other for other in devices if other.card == device.card]
    return [other for other in on_card if _value(one, rows.get(other.key), one.names) is not None]


def _limits(one: Field, stands_in: Sequence[str], *rows: Row | None) -> dict[str, float]:
    cells = {**one.limits, **one.limits_of.get(stands_in[0], {})}
    found = {limit: [_value(one, row, names) for row in rows] for limit, names in cells.items()}
    told = {limit: next((value for value in values if value is not None), None) for limit, values in found.items()}
    return plausible_limits(one.unit, {limit: value for limit, value in told.items() if value is not None})


def _value(one: Field, row: Row | None, names: Sequence[str]) -> float | None:
    raw = _cell(row, names)
    return figure(raw, one.unit, assumed=one.scale).value if raw else None


def _cell(row: Row | None, names: Sequence[str]) -> Raw | None:
    return next((row.cells[name] for name in names if name in row.cells), None) if row else None


def _expected(row: Row | None) -> bool:
    return row is not None and row.expected


def _forbidden(reading: Reading) -> bool:
    return reading.missing is Missing.UNREADABLE and "permission" in reading.detail.casefold()
