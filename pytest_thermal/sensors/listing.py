"""The list behind ``pytest --sensors``: every sensor with a live reading, or why there is none."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.model.catalogue import IN_ENGLISH, Catalogue
from pytest_thermal.model.said import joined, say
from pytest_thermal.sensors.registry import Discovery, Found
from pytest_thermal.sensors.sysfs.files import natural

Row = dict[str, str | float | None]

_SHOWN_UNITS = {
    Unit.CELSIUS: "°C",
    Unit.KELVIN_MARGIN: say("K left"),
    Unit.WATTS: "W",
    Unit.RPM: "RPM",
    Unit.PERCENT: "%",
    Unit.MEGAHERTZ: "MHz",
    Unit.VOLTS: "V",
    Unit.AMPERES: "A",
    Unit.LITERS_PER_MINUTE: "l/min",
    Unit.PASCALS: "Pa",
    Unit.MILLISECONDS: "ms",
}
MISSING: Mapping[Missing, str] = {
    Missing.TIMEOUT: say("timeout"),
    Missing.ABSENT: say("absent"),
    Missing.UNREADABLE: say("unreadable"),
    Missing.NOT_OFFERED: say("not offered"),
    Missing.DEVICE_ERROR: say("device error"),
    Missing.IMPLAUSIBLE: say("implausible"),
    Missing.STUCK: say("stuck"),
    Missing.STALE: say("stale"),
    Missing.NOT_UNDERSTOOD: say("not understood"),
}
NOT_IN_PATH = "is not installed (not found in PATH)"
"""How the reason ends that there is no such program."""
_WIDEST = 56
"""Columns for an id; a longer one pushes its own line aside and not the whole table."""


def rows(discovery: Discovery) -> list[Row]:
    """One row a sensor: ``sensor, value, unit, source, device, reason``; no two rows of one sensor.

    ``value`` is None where there is none, and ``reason`` says why. What is to be said of a source alone is a row
    without ``sensor``.
    """
    offered = {sensor.id for sensor in discovery.sensors}
    told: set[str] = set()
    result: list[Row] = []
    for one in discovery.found:
        shown = _shown(one)
        for row in shown:
            name = str(row["sensor"])
            again = name in told or (name in offered and row["value"] is None and not _is_sensor_of(one, name))
            told.add(name)
            of_source: Row = {
                "sensor": None,
                "unit": None,
                "device": None,
                "reason": say("{name}: {text}", name=name, text=row["reason"]),
            }
            result.append({**row, **of_source} if again else row)
        if not shown:
            blank: Row = dict.fromkeys(("sensor", "value", "unit", "source", "device", "reason"))
            result.append({**blank, "source": one.spec.name, "reason": one.availability.reason})
    return result


def as_json(discovery: Discovery) -> str:
    """The rows as one JSON list."""
    return json.dumps(rows(discovery), ensure_ascii=False, indent=1)


def table(discovery: Discovery, told: Catalogue = IN_ENGLISH) -> str:
    """The rows for a person: a heading a source, a line a sensor, and at the end what could not be used."""
    lines: list[str] = []
    lacking = [one for one in discovery.found if _is_not_installed(one)]
    for one in discovery.found:
        if one in lacking:
            continue
        shown = _shown(one)
        state = "" if one.availability.ok else say("not available")
        # Where a line below says the same, once is enough.
        said = any(one.availability.reason == absent.reading.detail for absent in one.absent)
        reason = "" if said else one.availability.reason
        lines.append(told(joined(": ", filter(None, (one.spec.name, state, reason)))))
        lines += _lines(shown, told)
    if lacking:
        names = joined(", ", [one.spec.name for one in lacking])
        lines.append(told(say("not installed (not found in PATH): {names}", names=names)))
    sensors, sources = len(discovery.sensors), len(discovery.specs)
    count = say(
        "{sensors} of {sources}",
        sensors=say("1 sensor") if sensors == 1 else say("{count} sensors", count=sensors),
        sources=say("1 source") if sources == 1 else say("{count} sources", count=sources),
    )
    return "\n".join([*lines, "", told(count)])


def _shown(one: Found) -> list[Row]:
    """What the source has by its devices' names, then what it has not."""
    here = sorted(one.sensors, key=lambda sensor: natural(sensor.id))
    return [
        *(_row(sensor, one.readings.get(sensor.id), one) for sensor in here),
        *(_row(absent.sensor, absent.reading, one) for absent in one.absent),
    ]


def _is_not_installed(one: Found) -> bool:
    """Whether it is a maker's tool that this machine does not have, as it has not most of them."""
    return "tool" in one.spec.options and not one.absent and one.availability.reason.endswith(NOT_IN_PATH)


def _is_sensor_of(one: Found, name: str) -> bool:
    return any(sensor.id == name for sensor in one.sensors)


def _row(sensor: Sensor, reading: Reading | None, one: Found) -> Row:
    if reading is None:
        value, reason = None, say("no reading yet")
    elif reading.value is None:
        missing = MISSING[reading.missing] if reading.missing is not None else "None"
        value, reason = None, joined(": ", filter(None, (missing, reading.detail)))
    else:
        value, reason = reading.value, ""
    return {
        "sensor": sensor.id,
        "value": value,
        "unit": str(sensor.unit),
        "source": one.spec.name,
        "device": sensor.device,
        "reason": reason,
    }


def _lines(shown: Sequence[Row], told: Catalogue) -> list[str]:
    width = min(_WIDEST, max((len(str(row["sensor"])) for row in shown), default=0))
    return [f"  {_padded(str(row['sensor']), width)}  {_told(row, told)}" for row in shown]


def _told(row: Row, told: Catalogue) -> str:
    value, unit, reason = row["value"], row["unit"], row["reason"]
    if not isinstance(value, float | int):
        return f"–  {told(str(reason) if not isinstance(reason, str) else reason)}"
    if unit == Unit.BITS:
        return f"{int(value):#x}"
    if unit == Unit.BYTES:
        return f"{value / 2**30:.4g} GiB"
    return f"{value:.6g} {told(_SHOWN_UNITS.get(Unit(str(unit)), ''))}".rstrip()


def _padded(text: str, width: int) -> str:
    """Padded by what a terminal shows: labels may be in Chinese, whose characters take two columns."""
    shown = sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)
    return text + " " * max(0, width - shown)
