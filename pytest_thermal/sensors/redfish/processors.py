"""Processors and accelerators of a Redfish service: which number each has in ids, and what its metrics hold. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_thermal.model import Unit
from pytest_thermal.sensors.plausibility import plausible_limits
from pytest_thermal.sensors.redfish.resources import source_of
from pytest_thermal.sensors.redfish.things import Quantity, Resource, Thing, number_in
from pytest_thermal.sensors.sysfs.files import natural, slug

_WORDS = {"CPU": "cpu", "GPU": "gpu", "Accelerator": "gpu"}
"""By ProcessorType: what ids call it. FPGAs, cores, threads and partitions are left out."""
_OWN_WORDS = re.compile(r"(?<![a-z])(npu|mlu|dcu|xpu|gcu|hpu|ppu)(?![a-z])", re.IGNORECASE)
"""In the Id or Name of what calls itself just an accelerator."""


@dataclass(frozen=True, kw_only=True)
class Processor:
    """One that is there."""

    resource: Resource
    device: str
    """What ids call it: ``cpu0``, ``gpu3``."""
    longer: str
    """Where another system of the service has one of that name too."""
    name: str

    @property
    def part(self) -> str:
        """What stands before its quantities in ids, as our own sources have it."""
        return "package." if self.device.startswith("cpu") else ""


def numbered(members: Sequence[tuple[str, Resource]], system: str) -> list[Processor]:
    """The processors among a system's, each with the number in its own Id.

    That stays with it when another is lost. Sockets are counted from 0, as the kernel does, whether or not the service
    does; cards keep the service's numbers. Without numbers, or with one twice, they are counted in their order.
    """
    kinds: dict[str, list[tuple[str, Resource]]] = {}
    for uri, resource in members:
        word = _word(resource)
        if word:
            kinds.setdefault(word, []).append((_id(uri, resource), resource))
    found = []
    for word, alike in kinds.items():
        alike.sort(key=lambda one: natural(one[0]))
        trailing = [re.search(r"(\d+)\D*$", name) for name, _ in alike]
        numbers = [int(match[1]) for match in trailing if match]
        if len(numbers) < len(alike) or len(set(numbers)) < len(numbers):
            numbers = list(range(len(alike)))
        first = 1 if word == "cpu" and 0 not in numbers else 0
        for number, (name, resource) in zip(numbers, alike, strict=True):
            if _state(resource) == "Absent":
                continue
            device = f"{word}{number - first}"
            longer = f"{word}_{slug(system)}_{number - first}"
            found.append(Processor(resource=resource, device=device, longer=longer, name=name))
    return found


def environment(uri: str, resource: Resource, processor: Processor) -> Iterator[Thing]:
    """``EnvironmentMetrics`` of a processor: its temperature and power."""
    limit = resource.get("PowerLimitWatts")
    cap = number_in(limit.get("SetPoint")) if isinstance(limit, Mapping) else None
    limits = {} if cap is None else {"cap": cap}
    for key, quantity, unit, told in (
        ("TemperatureCelsius", "temperature_celsius", Unit.CELSIUS, {}),
        ("PowerWatts", "power_watts", Unit.WATTS, plausible_limits(Unit.WATTS, limits)),
    ):
        excerpt = resource.get(key)
        if isinstance(excerpt, Mapping):
            yield _thing(
                uri, processor, part=key,
                quantity=Quantity(name=f"{processor.part}{quantity}", unit=unit, keys=(key, "Reading"), limits=told,
                                  data_source=source_of(excerpt)),
            )  # fmt: skip


def metrics(uri: str, resource: Resource, processor: Processor, known: Sequence[Thing]) -> Iterator[Thing]:
    """``ProcessorMetrics``: how busy a card is and its clock; and what ``known`` lacks of temperature and power."""
    keys = [
        ("TemperatureCelsius", "temperature_celsius", Unit.CELSIUS),
        ("ConsumedPowerWatt", "power_watts", Unit.WATTS),
    ]
    if not processor.device.startswith("cpu"):
        keys += [
            ("BandwidthPercent", "utilization_percent", Unit.PERCENT),
            ("OperatingSpeedMHz", "clock_megahertz", Unit.MEGAHERTZ),
        ]
    there = {quantity.name for thing in known for quantity in thing.quantities}
    for key, quantity, unit in keys:
        name = f"{processor.part}{quantity}"
        if key in resource and name not in there:
            yield _thing(uri, processor, part=key, quantity=Quantity(name=name, unit=unit, keys=(key,)))


def _thing(uri: str, processor: Processor, *, part: str, quantity: Quantity) -> Thing:
    return Thing(
        uri=uri, part=part, name=processor.name, device=processor.device, longer=processor.longer,
        quantities=(quantity,),
    )  # fmt: skip


def _word(resource: Resource) -> str:
    kind = resource.get("ProcessorType")
    word = _WORDS.get(kind, "") if isinstance(kind, str) else ""
    own = _OWN_WORDS.search(f"{resource.get('Id')} {resource.get('Name')}".replace("_", " "))
    return own[1].lower() if word == "gpu" and own else word


def _id(uri: str, resource: Resource) -> str:
    told = resource.get("Id")
    return " ".join(str(told).split()) if isinstance(told, str | int) and str(told).strip() else uri.rpartition("/")[2]


def _state(resource: Resource) -> str:
    status = resource.get("Status")
    state = status.get("State") if isinstance(status, Mapping) else None
    return state if isinstance(state, str) else ""
