"""What the kernel shows below /sys: hwmon chips, thermal zones and the processor's packages."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_thermal.model import Unit
from pytest_thermal.sensors.plausibility import plausible_limits
from pytest_thermal.sensors.sysfs.files import folders, natural, read_integer, read_text, slug

_INPUT = re.compile(r"(temp|fan|power)(\d+)_(input|average)")
_TRIP_NAMES = {"critical": "critical", "hot": "hot", "passive": "passive"}


@dataclass(frozen=True, kw_only=True)
class Input:
    """One quantity of a chip."""

    kind: str
    """``temp``, ``fan`` or ``power``."""
    number: int
    path: Path
    label: str
    """The driver's label, else ``temp1``."""
    labelled: bool
    limits: Mapping[str, float]
    fault: Path | None = None
    """Where the driver says whether the sensor is broken, such as an open diode; None where it does not."""


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A hwmon chip. Its number moves from boot to boot; name, device and labels do not."""

    folder: Path
    name: str
    place: str
    """The device behind it, such as its PCI address; empty where the kernel does not link one."""
    inputs: tuple[Input, ...] = field(repr=False)
    numa_node: int | None = None
    """Where its device is on a machine with several; None where the kernel does not say."""

    @property
    def identity(self) -> str:
        """What stays with it over a reboot."""
        return f"{self.name}@{self.place}" if self.place else self.name

    def of_kind(self, kind: str) -> list[Input]:
        """Its inputs of one kind, by number."""
        return [one for one in self.inputs if one.kind == kind]

    def is_the_same(self) -> bool:
        """Whether what now has its number is this chip. Another gets the number of one that went."""
        home = self.folder.parent if self.folder.name == "device" else self.folder
        return read_text(self.folder / "name") == self.name and _place(home) == self.place


@dataclass(frozen=True, kw_only=True)
class Zone:
    """A thermal zone."""

    folder: Path
    type: str
    number: int
    place: str
    enabled: bool
    limits: Mapping[str, float]

    @property
    def identity(self) -> str:
        """What stays with it over a reboot: its number does not."""
        return f"zone:{self.type}@{self.place}" if self.place else f"zone:{self.type}"

    def is_the_same(self) -> bool:
        """Whether what now has its number is this zone."""
        return read_text(self.folder / "type") == self.type and _place(self.folder) == self.place


def chips(sysfs: Path) -> list[Chip]:
    """Every hwmon chip, sorted by what stays with it."""
    found = []
    for folder in folders(sysfs / "class" / "hwmon", "hwmon*"):
        # Kernels before 3.x keep the chip's files one folder deeper.
        for base in (folder, folder / "device"):
            name = read_text(base / "name")
            if name:
                node = read_integer(folder / "device" / "numa_node")
                found.append(
                    Chip(
                        folder=base, name=name, place=_place(folder), inputs=tuple(_inputs(base)),
                        numa_node=node if node is not None and node >= 0 else None,
                    )
                )  # fmt: skip
                break
    return sorted(found, key=lambda chip: (chip.name, natural(chip.place), natural(chip.folder.as_posix())))


def zones(sysfs: Path) -> list[Zone]:
    """Every thermal zone, by its number."""
    found = []
    for folder in folders(sysfs / "class" / "thermal", "thermal_zone*"):
        kind = read_text(folder / "type")
        if not kind:
            continue
        found.append(
            Zone(
                folder=folder,
                type=kind,
                number=int(re.sub(r"\D", "", folder.name) or 0),
                place=_place(folder),
                enabled=read_text(folder / "mode") != "disabled",
                limits=_trips(folder),
            )
        )
    return found


def packages(sysfs: Path) -> dict[int, list[int]]:
    """The processor packages in their order, and the logical CPUs of each; empty where the kernel does not tell."""
    by_package: dict[int, list[int]] = {}
    for folder in folders(sysfs / "devices" / "system" / "cpu", "cpu[0-9]*"):
        package = read_integer(folder / "topology" / "physical_package_id")
        if package is not None and folder.name[3:].isdigit():
            by_package.setdefault(package, []).append(int(folder.name[3:]))
    return {order: by_package[package] for order, package in enumerate(sorted(by_package))}


def package_of_node(sysfs: Path, found: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """By NUMA node: the package of ``found`` that it is in; without the nodes that have no processor."""
    of_core = {core: package for package, cores in found.items() for core in cores}
    nodes: dict[int, int] = {}
    for folder in folders(sysfs / "devices" / "system" / "node", "node[0-9]*"):
        first = re.match(r"\d+", read_text(folder / "cpulist") or "")
        if first and int(first[0]) in of_core and folder.name[4:].isdigit():
            nodes[int(folder.name[4:])] = of_core[int(first[0])]
    return nodes


def numbered(names: Sequence[str]) -> list[str]:
    """A device's name for each chip or zone name: ``nvme`` twice is nvme0 and nvme1, ``nct6798`` once stays."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        base = slug(name)
        count = seen.get(base, 0)
        seen[base] = count + 1
        if base[-1].isdigit():
            result.append(f"{base}_{count}" if count else base)
        else:
            result.append(f"{base}{count}")
    return result


def _place(folder: Path) -> str:
    link = folder / "device"
    return Path(os.path.realpath(link)).name if link.is_symlink() else ""


def _inputs(base: Path) -> list[Input]:
    try:
        names = sorted((path.name for path in base.iterdir()), key=natural)
    except OSError:
        return []
    found: dict[tuple[str, int], Input] = {}
    for name in names:
        match = _INPUT.fullmatch(name)
        if match is None or (match[1] != "power" and match[3] != "input"):
            continue
        key = (match[1], int(match[2]))
        # amdgpu renamed the average to input; where both are there, the average is the steadier one.
        if key in found and match[3] == "input":
            continue
        stem = f"{match[1]}{match[2]}"
        label = read_text(base / f"{stem}_label")
        found[key] = Input(
            kind=match[1],
            number=int(match[2]),
            path=base / name,
            label=label or stem,
            labelled=bool(label),
            limits=_limits(base, stem),
            fault=base / f"{stem}_fault" if f"{stem}_fault" in names else None,
        )
    return list(found.values())


def _limits(base: Path, stem: str) -> dict[str, float]:
    if stem.startswith("temp"):
        unit, files, per_unit = Unit.CELSIUS, {"max": "max", "critical": "crit", "emergency": "emergency"}, 1000
    elif stem.startswith("power"):
        unit, files, per_unit = Unit.WATTS, {"cap": "cap"}, 1_000_000
    else:
        unit, files, per_unit = Unit.RPM, {"min": "min"}, 1
    read = {name: read_integer(base / f"{stem}_{suffix}") for name, suffix in files.items()}
    return plausible_limits(unit, {name: value / per_unit for name, value in read.items() if value is not None})


def _trips(folder: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind_file in sorted(folder.glob("trip_point_*_type"), key=lambda path: natural(path.name)):
        kind = read_text(kind_file)
        value = read_integer(kind_file.with_name(kind_file.name.replace("_type", "_temp")))
        if kind in _TRIP_NAMES and value is not None:
            found.setdefault(_TRIP_NAMES[kind], value / 1000.0)
    return plausible_limits(Unit.CELSIUS, found)
