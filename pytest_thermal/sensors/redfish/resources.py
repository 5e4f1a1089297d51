"""What each kind of Redfish resource measures: from one resource to its things. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_thermal.model import Unit
from pytest_thermal.sensors.bmc_names import MARGIN, POWER, SHARE, SPEED, TEMPERATURE, called, left_out, measures
from pytest_thermal.sensors.plausibility import plausible_limits
from pytest_thermal.sensors.redfish.things import Member, Quantity, Resource, Thing, number_in
from pytest_thermal.sensors.redfish.units import Measure, measure
from pytest_thermal.sensors.sysfs.files import slug

_COOLING = frozenset(
    {"Intake", "Exhaust", "Room", "LiquidInlet", "LiquidOutlet", "CoolingSubsystem", "Pump", "Reservoir"}
)
_LIQUID = {"LiquidInlet": "coolant_supply", "LiquidOutlet": "coolant_return"}
"""PhysicalContext: what is measured whatever it is called."""
_THRESHOLDS = {"UpperCaution": "max", "UpperCritical": "critical", "UpperFatal": "shutdown"}
_OLD_THRESHOLDS = {
    "UpperThresholdNonCritical": "max",
    "UpperThresholdCritical": "critical",
    "UpperThresholdFatal": "shutdown",
}
_NOT_COOLING = "left out, since it is not of the cooling"
_KILO = 1000.0
_QUANTITY = re.compile(r"[ _.-]*\b(?:flow|flow ?rate|pressure|press)$", re.IGNORECASE)


def name_of(resource: Resource, otherwise: str = "") -> str:
    """What a resource is called."""
    for key in ("Name", "FanName", "DeviceName", "Id", "MemberId"):
        text = resource.get(key)
        if isinstance(text, str | int) and str(text).strip():
            return " ".join(str(text).split())
    return otherwise


def sensor(uri: str, resource: Resource, around: str) -> Iterator[Thing]:
    """``Sensor``: one reading with its unit and thresholds."""
    found = measure(resource.get("ReadingUnits"), resource.get("ReadingType"))
    basis = resource.get("ReadingBasis")
    # Degrees between two temperatures are none.
    if found is None or basis == "Delta":
        return
    name, context = name_of(resource, uri.rpartition("/")[2]), str(resource.get("PhysicalContext") or "")
    quantity, why = _named(name, found.unit, context)
    if basis == "Headroom":
        if found.unit is not Unit.CELSIUS:
            return
        quantity, why = "temperature_kelvin_margin", why or _NOT_COOLING
    device = _LIQUID.get(context, "") if found.unit is Unit.CELSIUS and basis != "Headroom" else ""
    if found.unit in (Unit.LITERS_PER_MINUTE, Unit.PASCALS):
        device = called(_QUANTITY.sub("", name) or name)
    yield Thing(
        uri=uri,
        name=name,
        device=device or called(name),
        longer=called(f"{around} {name}", whole=True),
        quantities=(
            Quantity(
                name=quantity, unit=_unit(quantity, found.unit), keys=("Reading",), scale=found.scale,
                offset=found.offset, limits=_limits(found, resource.get("Thresholds")),
            ),
        ),
        left_out=why,
    )  # fmt: skip


def limits_of_sensor(resource: Resource) -> Mapping[str, float]:
    """A ``Sensor``'s own limits in our unit."""
    found = measure(resource.get("ReadingUnits"), resource.get("ReadingType"))
    return {} if found is None else _limits(found, resource.get("Thresholds"))


def fan(uri: str, resource: Resource, around: str) -> Iterator[Thing]:
    """``Fan``: rpm where it tells them, else the share of full speed."""
    yield from _turning(uri, resource, around, word="fan", excerpt="SpeedPercent")


def pump(uri: str, resource: Resource, around: str) -> Iterator[Thing]:
    """``Pump``."""
    yield from _turning(uri, resource, around, word="pump", excerpt="PumpSpeedPercent")


def _turning(uri: str, resource: Resource, around: str, *, word: str, excerpt: str) -> Iterator[Thing]:
    key = excerpt if excerpt in resource or "SpeedPercent" not in resource else "SpeedPercent"
    told = resource.get(key)
    in_rpm = isinstance(told, Mapping) and "SpeedRPM" in told
    name = name_of(resource)
    spoken = name if word in name.casefold() else f"{word} {name or uri.rpartition('/')[2]}"
    yield Thing(
        uri=uri,
        name=name or spoken,
        device=called(spoken),
        longer=called(f"{around} {spoken}", whole=True),
        quantities=(
            Quantity(name="speed_rpm", unit=Unit.RPM, keys=(key, "SpeedRPM"), data_source=source_of(told))
            if in_rpm
            else Quantity(name="speed_percent", unit=Unit.PERCENT, keys=(key, "Reading"), data_source=source_of(told)),
        ),
    )


def connector(uri: str, resource: Resource, around: str, *, loop: str) -> Iterator[Thing]:
    """``CoolantConnector``: supply, return, and what flows between them.

    ``loop`` is what ids call the loop: ``coolant`` for the one through the machine, ``facility`` for the building's.
    """
    name = name_of(resource)
    for part, quantities in (
        ("supply", (("temperature_celsius", Unit.CELSIUS, "SupplyTemperatureCelsius", 1.0),
                    ("pressure_pascals", Unit.PASCALS, "SupplyPressurekPa", _KILO))),
        ("return", (("temperature_celsius", Unit.CELSIUS, "ReturnTemperatureCelsius", 1.0),
                    ("pressure_pascals", Unit.PASCALS, "ReturnPressurekPa", _KILO))),
        ("", (("flow_liters_per_minute", Unit.LITERS_PER_MINUTE, "FlowLitersPerMinute", 1.0),)),
    ):  # fmt: skip
        found = tuple(
            Quantity(name=quantity, unit=unit, keys=(key, "Reading"), scale=scale, data_source=source_of(resource[key]))
            for quantity, unit, key, scale in quantities
            if isinstance(resource.get(key), Mapping)
        )
        if found:
            tail = f"_{part}" if part else ""
            yield Thing(
                uri=uri, part=part or "flow", name=f"{name} {part}".strip(), device=f"{loop}{tail}",
                longer=slug(f"{around} {loop} {uri.rpartition('/')[2]}{tail}"), quantities=found,
            )  # fmt: skip


def reservoir(uri: str, resource: Resource, around: str) -> Iterator[Thing]:
    """``Reservoir``: how full it is."""
    if isinstance(resource.get("FluidLevelPercent"), Mapping):
        name = name_of(resource)
        spoken = name if "reservoir" in name.casefold() else f"reservoir {name}"
        level = Quantity(name="level_percent", unit=Unit.PERCENT, keys=("FluidLevelPercent", "Reading"))
        yield Thing(
            uri=uri, name=name, device=slug(spoken), longer=slug(f"{around} {spoken}"), quantities=(level,)
        )  # fmt: skip


def leak_detector(
    uri: str, resource: Resource, around: str, *, within: tuple[str | Member, ...] = ()
) -> Iterator[Thing]:
    """``LeakDetector``."""
    name = name_of(resource, uri.rpartition("/")[2])
    own = re.sub(r"(?:leak(?:age)?|detect(?:ion|or)?s?|sensor)", " ", name, flags=re.IGNORECASE)
    word = slug(own) if own.strip(" _-") else slug(str(resource.get("Id") or ""))
    device = f"leak{word}" if word.isdigit() else f"leak_{word}".removesuffix("_unnamed")
    yield Thing(
        uri=uri, name=name, device=device, longer=f"{slug(around)}_{device}", within=within,
        quantities=(Quantity(name="detector_state", unit=Unit.STATE, keys=("DetectorState",)),),
    )  # fmt: skip


def leak_groups(uri: str, resource: Resource, around: str) -> Iterator[Thing]:
    """``LeakDetection`` itself, where its detectors have no resources of their own."""
    groups = resource.get("LeakDetectorGroups")
    for group in _members(groups):
        where = _member("LeakDetectorGroups", group, groups, ("GroupName",))
        detectors = group.get("Detectors")
        for one in _members(detectors):
            member = _member("Detectors", one, detectors, ("DeviceName", "DataSourceUri"))
            if where is not None and member is not None:
                yield from leak_detector(uri, one, around, within=(where, member))


def environment(uri: str, resource: Resource, around: str, *, name: str, whole: bool) -> Iterator[Thing]:
    """``EnvironmentMetrics`` of a chassis or a unit; ``whole``: of the machine, and not of a part of it."""
    for key, quantity, unit, kept in (
        ("TemperatureCelsius", "temperature_celsius", Unit.CELSIUS, False),
        ("PowerWatts", "power_watts", Unit.WATTS, whole),
        ("HumidityPercent", "humidity_percent", Unit.PERCENT, False),
    ):
        told = resource.get(key)
        if isinstance(told, Mapping):
            yield Thing(
                uri=uri, part=key, name=name, device=called(name), longer=called(f"{around} {name}", whole=True),
                quantities=(Quantity(name=quantity, unit=unit, keys=(key, "Reading"), data_source=source_of(told)),),
                left_out="" if kept else _NOT_COOLING, summary=True,
            )  # fmt: skip


def supply_metrics(uri: str, resource: Resource, around: str, *, name: str) -> Iterator[Thing]:
    """``PowerSupplyMetrics``: what a power supply takes in, or where it does not tell that, gives out."""
    key = next((one for one in ("InputPowerWatts", "OutputPowerWatts") if isinstance(resource.get(one), Mapping)), "")
    if key:
        yield Thing(
            uri=uri, name=name, device=called(name), longer=called(f"{around} {name}", whole=True),
            quantities=(
                Quantity(
                    name="power_watts", unit=Unit.WATTS, keys=(key, "Reading"), data_source=source_of(resource[key])
                ),
            ),
        )  # fmt: skip


def thermal_metrics(uri: str, resource: Resource, around: str) -> Iterator[Thing]:
    """``ThermalMetrics``: the chassis' own summary, and a list of temperatures."""
    summary = resource.get("TemperatureSummaryCelsius")
    for key, device in (("Intake", "inlet"), ("Ambient", "ambient"), ("Exhaust", "exhaust")):
        told = summary.get(key) if isinstance(summary, Mapping) else None
        if isinstance(told, Mapping):
            yield Thing(
                uri=uri, name=key, device=device, longer=slug(f"{around} {device}"), summary=True,
                within=("TemperatureSummaryCelsius", key),
                quantities=(
                    Quantity(
                        name="temperature_celsius", unit=Unit.CELSIUS, keys=("Reading",), data_source=source_of(told)
                    ),
                ),
            )  # fmt: skip
    readings = resource.get("TemperatureReadingsCelsius")
    for one in _members(readings):
        member = _member("TemperatureReadingsCelsius", one, readings, ("DataSourceUri", "DeviceName"))
        if member is not None:
            yield _temperature(uri, one, around, member, key="Reading")


def thermal(uri: str, resource: Resource, around: str) -> Iterator[Thing]:
    """``Thermal``, which newer services have split up."""
    temperatures = resource.get("Temperatures")
    for one in _members(temperatures):
        member = _member("Temperatures", one, temperatures, ("MemberId", "Name", "@odata.id"))
        if member is not None:
            yield _temperature(uri, one, around, member, key="ReadingCelsius")
    fans = resource.get("Fans")
    for one in _members(fans):
        member = _member("Fans", one, fans, ("MemberId", "Name", "FanName", "@odata.id"))
        if member is not None:
            yield _old_fan(uri, one, around, member)


def power(uri: str, resource: Resource, around: str) -> Iterator[Thing]:
    """``Power``, likewise."""
    for array, keys in (
        ("PowerControl", ("PowerConsumedWatts",)),
        ("PowerSupplies", ("PowerInputWatts", "LastPowerOutputWatts", "PowerOutputWatts")),
    ):
        members = resource.get(array)
        for one in _members(members):
            member = _member(array, one, members, ("MemberId", "Name", "@odata.id"))
            key = next((key for key in keys if number_in(one.get(key)) is not None), keys[0])
            if member is not None:
                name = name_of(one, array)
                yield Thing(
                    uri=uri, name=name, device=called(name), longer=called(f"{around} {name}", whole=True),
                    within=(member,), quantities=(Quantity(name="power_watts", unit=Unit.WATTS, keys=(key,)),),
                )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------


def _temperature(uri: str, one: Resource, around: str, member: Member, *, key: str) -> Thing:
    name, context = name_of(one), str(one.get("PhysicalContext") or "")
    quantity, why = _named(name, Unit.CELSIUS, context)
    told = {limit: number_in(one.get(cell)) for cell, limit in _OLD_THRESHOLDS.items()}
    limits = {limit: value for limit, value in told.items() if value is not None}
    return Thing(
        uri=uri,
        name=name,
        device=_LIQUID.get(context, "") or called(name),
        longer=called(f"{around} {name}", whole=True),
        within=(member,),
        quantities=(
            Quantity(
                name=quantity, unit=_unit(quantity, Unit.CELSIUS), keys=(key,),
                limits=plausible_limits(Unit.CELSIUS, limits), data_source=source_of(one),
            ),
        ),
        left_out=why,
        summary=key == "Reading",
    )  # fmt: skip


def _old_fan(uri: str, one: Resource, around: str, member: Member) -> Thing:
    key = "Reading" if "Reading" in one or "CurrentReading" not in one else "CurrentReading"
    found = measure(one.get("ReadingUnits") or one.get("Units"))
    value = number_in(one.get(key))
    untold = found is None and value is not None and value <= 100
    is_share = found is not None and found.unit is Unit.PERCENT
    name = name_of(one, "fan")
    return Thing(
        uri=uri,
        name=name,
        device=called(name),
        longer=called(f"{around} {name}", whole=True),
        within=(member,),
        quantities=(
            Quantity(name="speed_percent", unit=Unit.PERCENT, keys=(key,))
            if is_share
            else Quantity(name="speed_rpm", unit=Unit.RPM, keys=(key,)),
        ),
        left_out="left out, since it does not say whether that is rpm or percent" if untold else "",
    )


def _named(name: str, unit: Unit, context: str) -> tuple[str, str]:
    """What a reading is called in ids, and why it is left out unless the bench names it."""
    word = {Unit.CELSIUS: "degrees C", Unit.RPM: "RPM", Unit.WATTS: "Watts", Unit.PERCENT: "percent"}.get(unit)
    if unit is Unit.LITERS_PER_MINUTE:
        return "flow_liters_per_minute", ""
    if unit is Unit.PASCALS:
        of_loop = context in _COOLING or re.search(r"coolant|liquid|water|cdu|pump|loop", name, re.IGNORECASE)
        return "pressure_pascals", "" if of_loop else _NOT_COOLING
    kind = measures(name, word) if word else ""
    quantity = {
        TEMPERATURE: "temperature_celsius",
        MARGIN: "temperature_kelvin_margin",
        SPEED: "speed_rpm",
        SHARE: "speed_percent",
        POWER: "power_watts",
    }.get(kind, "")
    if not quantity:
        return {Unit.VOLTS: "voltage_volts", Unit.AMPERES: "current_amperes"}.get(unit, "share_percent"), _NOT_COOLING
    return quantity, "" if context in _COOLING else left_out(name, kind)


def _unit(quantity: str, unit: Unit) -> Unit:
    return Unit.KELVIN_MARGIN if quantity.endswith(str(Unit.KELVIN_MARGIN)) else unit


def _limits(found: Measure, thresholds: object) -> dict[str, float]:
    limits = {}
    for cell, limit in _THRESHOLDS.items():
        told = thresholds.get(cell) if isinstance(thresholds, Mapping) else None
        value = number_in(told.get("Reading")) if isinstance(told, Mapping) else None
        if value is not None:
            limits[limit] = value * found.scale + found.offset
    return plausible_limits(found.unit, limits)


def source_of(told: object) -> str:
    """The address of the sensor that an excerpt is of; empty where it does not say."""
    uri = told.get("DataSourceUri") if isinstance(told, Mapping) else None
    return uri if isinstance(uri, str) else ""


def _members(told: object) -> list[Mapping[str, Any]]:
    whole = told if isinstance(told, Sequence) and not isinstance(told, str) else ()
    return [one for one in whole if isinstance(one, Mapping)]


def _member(array: str, one: Resource, told: object, keys: Sequence[str]) -> Member | None:
    """How an element is found again: by the first key that tells it from all others."""
    members = _members(told)
    for key in keys:
        value = one.get(key)
        if value is None:
            continue
        if Counter(str(other.get(key)) for other in members)[str(value)] == 1:
            return Member(array=array, key=key, value=str(value))
    return None
