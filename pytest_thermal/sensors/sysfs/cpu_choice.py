"""Which of the kernel's temperatures are the processor's: the best there is, or the reason there is none.

Drivers differ in what they call it, and boards add sensors that are called CPU and are not. So one driver is taken,
the first of a fixed order that is there, and nothing else counts as the processor.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from pytest_thermal.model.said import joined, say
from pytest_thermal.sensors.sysfs.files import slug
from pytest_thermal.sensors.sysfs.tree import Chip, Input, Zone

_BOARD = re.compile(r"vrm|vrd|vdd|vout|vcore|ambient|pch|chipset|tin\b|socket", re.IGNORECASE)
_CORE = re.compile(r"core (\d+)", re.IGNORECASE)
_PACKAGE_NUMBER = re.compile(r"package id (\d+)", re.IGNORECASE)
_CCD = re.compile(r"tccd(\d+)", re.IGNORECASE)
_NODE = re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:([0-9a-f]{2})\.[0-7]", re.IGNORECASE)
_FIRST_NODE = 0x18
"""The PCI device of node 0 of AMD's and Hygon's processors; the others follow."""
_SOCKET = re.compile(r"cpu[ _-]?(\d+)[ _-]?(?:temp(?:erature)?)?|cpu[ _-]?temp(?:erature)?[ _-]?(\d+)", re.IGNORECASE)
_CONTROL_OFFSETS = (
    (re.compile(r"Threadripper (19|29)\d\d"), 27.0),
    (re.compile(r"Ryzen 7 2700X"), 10.0),
    (re.compile(r"Ryzen (5 1600X|7 1700X|7 1800X)"), 20.0),
)
"""Kelvin that these processors add to Tctl so that their fans run faster; zero for every later one."""

_LOONGARCH_POWERS_OFF_CELSIUS = 96.0

_ZONE_PACKAGE = re.compile(r"x86_pkg_temp|cpu([-_]?(thermal|therm|temp)([-_]?zone)?\d*)?", re.IGNORECASE)
_ZONE_PART = re.compile(r"(cpu|cpuss|cpucl|core)[-_]?\d.*|(big|little|mid)[-_]?(core|cpu).*|cluster.*", re.IGNORECASE)
_ZONE_SYSTEM = re.compile(r"soc\d*([-_]?therm(al)?)?\d*", re.IGNORECASE)
NEVER_CPU_ZONES = re.compile(
    r"acpitz|iwlwifi.*|int3\d\d\d.*|pch.*|b0d4|tcpu.*|tmem.*|.*(battery|skin|nvme|vrm|pmic).*", re.IGNORECASE
)
"""Zones of firmware, radio and board: constants, averages and set points, never the die."""


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Where a temperature is read."""

    path: Path
    fault: Path | None = None
    is_the_same: Callable[[], bool] = lambda: True


@dataclass(frozen=True, kw_only=True)
class Part:
    """One temperature of a processor."""

    cpu: int
    part: str
    """``package``, ``core4``, ``ccd1`` …"""
    spots: tuple[Spot, ...]
    """More than one: the hottest of them counts."""
    label: str
    identity: str
    limits: Mapping[str, float] = field(default_factory=dict)
    offset_kelvin: float = 0.0
    """What the driver's number is above the truth."""
    read_on_own_package: bool = False
    """Whether the driver answers for the processor that executes the read."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was chosen."""

    parts: tuple[Part, ...] = ()
    rejected: tuple[tuple[Part, str], ...] = ()
    """Looks like the processor's temperature, and why it does not count."""
    reason: str = ""
    """Why there are no parts."""

    @property
    def paths(self) -> frozenset[Path]:
        """Every file that is spoken for, one way or the other."""
        spoken = (*self.parts, *(part for part, _ in self.rejected))
        return frozenset(spot.path for part in spoken for spot in part.spots)


def choose(
    chips: Sequence[Chip],
    zones: Sequence[Zone],
    *,
    model: str,
    packages: Mapping[int, Sequence[int]],
    nodes: Mapping[int, int] = MappingProxyType({}),
) -> Choice:
    """The processor's temperatures.

    ``model`` is the processor's name, for the offsets of some; ``packages`` their logical CPUs; ``nodes`` which of
    these a NUMA node is of.
    """
    by_driver: tuple[tuple[tuple[str, ...], Callable[[list[Chip]], Choice]], ...] = (
        (("coretemp",), _coretemp),
        (("k10temp",), lambda found: _amd(found, model, packages, nodes)),
        (("zenpower",), lambda found: _amd(found, model, packages, nodes)),
        (("zhaoxin_cputemp", "via_cputemp"), _cores_without_package),
        (("cpu_hwmon",), lambda found: _loongarch(found, packages)),
        (("cpu-hwmon",), _sockets),
        (("apm_xgene",), lambda found: _one_each(found, packages, nodes)),
        (("scmi_sensors", "scpi_sensors"), lambda found: _firmware(found, packages)),
    )
    choice = Choice()
    for names, take in by_driver:
        found = [chip for chip in chips if chip.name in names and chip.of_kind("temp")]
        if found:
            choice = take(found)
        if choice.parts:
            break
    if not choice.parts and not choice.reason:
        choice = _zones(zones, packages)
    if not choice.parts:
        return replace(choice, reason=choice.reason or _none(chips, zones))
    # The package zone of x86 is the same sensor as the driver's; showing it twice would count it twice.
    same = [zone for zone in zones if zone.type == "x86_pkg_temp" and zone.folder / "temp" not in choice.paths]
    return replace(
        choice,
        parts=_each_its_own(choice.parts),
        rejected=(
            *choice.rejected,
            *((_zone_part(zone, 0, slug(zone.type)), say("the same sensor as the driver's")) for zone in same),
        ),
    )


def _each_its_own(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts, those that the kernel calls alike (zones of two sockets) apart by their order."""
    times: Counter[str] = Counter()
    found = []
    for part in parts:
        times[part.identity] += 1
        number = times[part.identity]
        found.append(replace(part, identity=f"{part.identity}#{number}") if number > 1 else part)
    return tuple(found)


def _part(chip: Chip, one: Input, *, cpu: int, part: str, offset_kelvin: float = 0.0) -> Part:
    return Part(
        cpu=cpu,
        part=part,
        spots=(Spot(path=one.path, fault=one.fault, is_the_same=chip.is_the_same),),
        label=f"{chip.name} {one.label}",
        identity=f"{chip.identity}/{one.label}",
        limits=one.limits,
        offset_kelvin=offset_kelvin,
    )


def _hottest(parts: Sequence[Part], *, cpu: int, what: str) -> Part:
    return Part(
        cpu=cpu,
        part="package",
        spots=tuple(spot for part in parts for spot in part.spots),
        label=f"hottest of {len(parts)} {what}" if len(parts) > 1 else parts[0].label,
        identity=f"{parts[0].identity}/hottest" if len(parts) > 1 else parts[0].identity,
        limits=parts[0].limits,
    )


def _coretemp(chips: list[Chip]) -> Choice:
    """A chip a die: of a processor with several, each calls itself by the processor's number."""
    numbers = [_package_of(chip, order) for order, chip in enumerate(chips)]
    parts: list[Part] = []
    for cpu in sorted(set(numbers)):
        dies = [_intel_die(chip, cpu) for chip, number in zip(chips, numbers, strict=True) if number == cpu]
        parts += _processor(cpu, dies)
    return Choice(parts=tuple(parts))


def _package_of(chip: Chip, order: int) -> int:
    labelled = [_PACKAGE_NUMBER.match(one.label) for one in chip.of_kind("temp")]
    number = next((match for match in labelled if match), None) or re.fullmatch(r"coretemp\.(\d+)", chip.place)
    return int(number[1]) if number else order


def _intel_die(chip: Chip, cpu: int) -> list[Part]:
    """Its package sensor first, or where it has none the hottest of its cores."""
    inputs = chip.of_kind("temp")
    package = next((one for one in inputs if re.match(r"package|.*package$", one.label, re.IGNORECASE)), None)
    cores = [
        _part(chip, one, cpu=cpu, part=f"core{match[1]}" if (match := _CORE.fullmatch(one.label)) else slug(one.label))
        for one in inputs
        if one is not package
    ]
    whole = _part(chip, package, cpu=cpu, part="package") if package else _hottest(cores, cpu=cpu, what="cores")
    return [whole, *cores]


def _processor(cpu: int, dies: Sequence[Sequence[Part]]) -> list[Part]:
    """A processor's parts from those of its dies, of each of which the first is the whole die."""
    if len(dies) <= 1:
        return [part for die in dies for part in die]
    wholes = [replace(die[0], part=f"die{number}") for number, die in enumerate(dies)]
    others = [replace(part, part=f"die{number}_{part.part}") for number, die in enumerate(dies) for part in die[1:]]
    return [_hottest(wholes, cpu=cpu, what="dies"), *wholes, *others]


def _amd(chips: list[Chip], model: str, packages: Mapping[int, Sequence[int]], nodes: Mapping[int, int]) -> Choice:
    """A chip a node of the processor's fabric. The first EPYC, its Threadripper and Hygon's have up to four in each."""
    places = [_NODE.fullmatch(chip.place) for chip in chips]
    numbers = [int(place[1], 16) if place else order for order, place in enumerate(places)]
    numbered = sorted(zip(numbers, chips, strict=True), key=lambda one: one[0])
    of_cpu = _told_by_kernel([chip for _, chip in numbered], nodes) or _of_nodes(
        [number for number, _ in numbered], packages
    )
    if packages and max(of_cpu) >= len(packages):
        return _untold(chips, packages)
    dies: dict[int, list[list[Part]]] = {}
    rejected: list[tuple[Part, str]] = []
    for cpu, (_, chip) in zip(of_cpu, numbered, strict=True):
        found, control = _amd_die(chip, cpu, model)
        dies.setdefault(cpu, []).append(found)
        if control:
            why = say("a control value for fans, up to 27 K above the die; the die's own is offered")
            part = f"die{len(dies[cpu]) - 1}_control" if of_cpu.count(cpu) > 1 else "control"
            rejected.append((replace(control, part=part), why))
    parts = [part for cpu in sorted(dies) for part in _processor(cpu, [die for die in dies[cpu] if die])]
    return Choice(parts=tuple(parts), rejected=tuple(rejected))


def _told_by_kernel(chips: Sequence[Chip], nodes: Mapping[int, int]) -> list[int]:
    """Which processor each chip is of, where the kernel says so of all."""
    told = [nodes.get(chip.numa_node) for chip in chips if chip.numa_node is not None]
    found = [package for package in told if package is not None]
    return found if len(found) == len(chips) else []


def _untold(chips: Sequence[Chip], packages: Mapping[int, Sequence[int]]) -> Choice:
    return Choice(
        reason=say(
            "{chips} chips {name} for {packages} processors: which is whose cannot be told",
            chips=len(chips), name=chips[0].name, packages=len(packages),
        )
    )  # fmt: skip


def _of_nodes(numbers: Sequence[int], packages: Mapping[int, Sequence[int]]) -> list[int]:
    """Which processor each chip is of: by the number of its node, which stays where another is lost."""
    if len(packages) <= 1:
        return [0] * len(numbers) if packages else list(range(len(numbers)))
    first = _FIRST_NODE if min(numbers) >= _FIRST_NODE else 0
    each = max(1, math.ceil(len(numbers) / len(packages)))
    return [(number - first) // each for number in numbers]


def _amd_die(chip: Chip, cpu: int, model: str) -> tuple[list[Part], Part | None]:
    """Its parts, and the control value where there is better; see :func:`_processor`."""
    by_label = {one.label.lower(): one for one in chip.of_kind("temp")}
    ccds = [
        _part(chip, one, cpu=cpu, part=f"ccd{match[1]}")
        for label, one in by_label.items()
        if (match := _CCD.fullmatch(label))
    ]
    # Drivers from before the labels have one input, which is the control value.
    control = by_label.get("tctl") or by_label.get("temp1")
    die = by_label.get("tdie")
    if die:
        whole = [_part(chip, die, cpu=cpu, part="package")]
    elif ccds:
        whole = [_hottest(ccds, cpu=cpu, what="dies")]
    elif control:
        offset = next((kelvin for pattern, kelvin in _CONTROL_OFFSETS if pattern.search(model)), 0.0)
        return [_part(chip, control, cpu=cpu, part="package", offset_kelvin=offset)], None
    else:
        whole = []
    return [*whole, *ccds], _part(chip, control, cpu=cpu, part="control") if control else None


def _one_each(chips: list[Chip], packages: Mapping[int, Sequence[int]], nodes: Mapping[int, int]) -> Choice:
    """A chip a processor, which does not say which: told by the kernel, or by their order where there are as many."""
    told = _told_by_kernel(chips, nodes)
    if len(packages) > 1 and len(set(told) or chips) != len(told or packages):
        return _untold(chips, packages)
    dies = [[_part(chip, one, cpu=cpu, part="package") for one in chip.of_kind("temp")[:1]]
            for cpu, chip in zip(told or range(len(chips)), chips, strict=True)]  # fmt: skip
    if len(packages) == 1:
        return Choice(parts=tuple(_processor(0, [[replace(part, cpu=0) for part in die] for die in dies])))
    return Choice(parts=tuple(part for die in dies for part in die))


def _cores_without_package(chips: list[Chip]) -> Choice:
    cores = []
    for order, chip in enumerate(chips):
        for one in chip.of_kind("temp"):
            match = _CORE.fullmatch(one.label)
            cores.append(_part(chip, one, cpu=0, part=f"core{match[1] if match else order}"))
    return Choice(parts=(_hottest(cores, cpu=0, what="cores"), *cores))


def _sockets(chips: list[Chip]) -> Choice:
    parts = []
    for chip in chips:
        for order, one in enumerate(chip.of_kind("temp")):
            number = _SOCKET.match(one.label)
            parts.append(_part(chip, one, cpu=int(number[1] or number[2]) if number else order, part="package"))
    return Choice(parts=tuple(parts))


def _loongarch(chips: list[Chip], packages: Mapping[int, Sequence[int]]) -> Choice:
    """Its driver reads the register of the processor that does the read, whichever file is asked."""
    chip = chips[0]
    first, *others = chip.of_kind("temp")
    limits = {"shutdown": _LOONGARCH_POWERS_OFF_CELSIUS}
    parts = tuple(
        replace(
            _part(chip, first, cpu=cpu, part="package"),
            read_on_own_package=len(packages) > 1,
            identity=f"{chip.identity}/package {cpu}",
            limits=limits,
        )
        for cpu in (packages or [0])
    )
    why = say("this driver answers for the processor that asks, whichever file is read")
    rejected = tuple(
        (_part(chip, one, cpu=order, part="package"), why)
        for order, one in enumerate(others, start=1)
        if order not in (packages or [0])
    )
    return Choice(parts=parts, rejected=rejected)


def _firmware(chips: list[Chip], packages: Mapping[int, Sequence[int]]) -> Choice:
    """All sensors sit under one chip here and only labels tell them apart."""
    found = [
        (chip, one)
        for chip in chips
        for one in chip.of_kind("temp")
        if re.search(r"cpu|cluster|core", one.label, re.IGNORECASE) and not _BOARD.search(one.label)
    ]
    if not found:
        return Choice()
    sockets = [_SOCKET.fullmatch(one.label) for _, one in found]
    numbers = [int(match[1] or match[2] or 0) for match in sockets if match]
    # More of them than processors, and they are its clusters.
    if len(numbers) == len(found) == len(set(numbers)) and (not packages or set(numbers) <= set(packages)):
        return _sockets([replace(chip, inputs=tuple(one for _, one in found)) for chip in chips[:1]])
    if len(packages) > 1:
        names = joined(", ", [one.label for _, one in found])
        return Choice(reason=say("whose of {count} processors {names} are cannot be told", count=len(packages),
                                 names=names))  # fmt: skip
    if len(found) == 1:
        chip, one = found[0]
        return Choice(parts=(_part(chip, one, cpu=0, part="package"),))
    parts = [_part(chip, one, cpu=0, part=slug(one.label)) for chip, one in found]
    return Choice(parts=(_hottest(parts, cpu=0, what="sensors"), *parts))


def _zones(zones: Sequence[Zone], packages: Mapping[int, Sequence[int]]) -> Choice:
    usable = [zone for zone in zones if zone.enabled and not NEVER_CPU_ZONES.fullmatch(zone.type)]
    wholes = [zone for zone in usable if _ZONE_PACKAGE.fullmatch(zone.type)]
    parts_of_some = [zone for zone in usable if _ZONE_PART.fullmatch(zone.type)]
    unclear = wholes or parts_of_some
    if len(packages) > 1 and unclear and len(wholes) != len(packages):
        return Choice(
            reason=say(
                "{count} zones {names} for {packages} processors: which is whose cannot be told", count=len(unclear),
                names=joined(", ", sorted({zone.type for zone in unclear})), packages=len(packages),
            )
        )  # fmt: skip
    if len(wholes) > 1 and len(packages) == 1:
        parts = [_zone_part(zone, 0, f"zone{number}") for number, zone in enumerate(wholes)]
        return Choice(parts=(_hottest(parts, cpu=0, what="zones"), *parts))
    if wholes:
        return Choice(parts=tuple(_zone_part(zone, cpu, "package") for cpu, zone in enumerate(wholes)))
    parts = [_zone_part(zone, 0, slug(zone.type)) for zone in parts_of_some]
    if parts:
        return Choice(parts=(_hottest(parts, cpu=0, what="zones"), *parts))
    system = [zone for zone in usable if _ZONE_SYSTEM.fullmatch(zone.type)]
    return Choice(parts=tuple(_zone_part(zone, 0, "package") for zone in system[:1]))


def _zone_part(zone: Zone, cpu: int, part: str) -> Part:
    return Part(
        cpu=cpu,
        part=part,
        spots=(Spot(path=zone.folder / "temp", is_the_same=zone.is_the_same),),
        label=f"thermal zone {zone.type}",
        identity=zone.identity,
        limits=zone.limits,
    )


def _none(chips: Sequence[Chip], zones: Sequence[Zone]) -> str:
    seen = sorted({chip.name for chip in chips} | {zone.type for zone in zones})
    if not seen:
        return say(
            "this machine shows no temperature in sysfs: a virtual machine, a container without the host's /sys, "
            "or a board that tells its temperatures only to its management controller"
        )
    return say(
        "none of the temperatures in sysfs is the processor's (there are: {names}); "
        "some servers tell it only to their management controller",
        names=joined(", ", seen),
    )
