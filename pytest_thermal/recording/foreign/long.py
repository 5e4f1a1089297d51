"""Logs with one row for each device and time: ``nvidia-smi --query-gpu=… --format=csv -l`` and its kin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_thermal.recording.foreign.cells import plain_number
from pytest_thermal.recording.foreign.columns import Column
from pytest_thermal.recording.foreign.notes import Notes
from pytest_thermal.sensors.tools.answer import normal_bus_id

_UUID = re.compile(r"(?:[A-Z]+-)?[0-9a-fA-F]{6,}(?:-[0-9a-fA-F]+)*")
_ORDER = ("uuid", "bus", "index")


@dataclass(kw_only=True)
class Owner:
    """One device of the log."""

    identity: str
    index: str = ""
    """The tool's number for it, as it was first seen."""
    rows: list[int] = field(default_factory=list)


def owners(keys: Sequence[Mapping[str, str]], lines: Sequence[int], notes: Notes) -> list[Owner]:
    """Which rows are of which device, by what stays with it; ``keys`` are each row's key cells.

    A number alone is taken for the device that had it, as long as only one did.
    """
    told = [{key: text for key, cell in row.items() if (text := _meant(key, cell))} for row in keys]
    holders: dict[str, set[str]] = {}
    for row in told:
        best = _best(row)
        if best and "index" in row and row["index"] != best:
            holders.setdefault(row["index"], set()).add(best)
    found: dict[str, Owner] = {}
    for number, row in enumerate(told):
        identity = _best(row)
        if identity == row.get("index"):
            known = holders.get(identity, set())
            if len(known) > 1:
                notes.add(
                    "only a number tells the device, and that number was several devices': left out", lines[number]
                )
                continue
            identity = next(iter(known), f"index {identity}")
        if not identity:
            notes.add("nothing tells which device it is of: left out", lines[number])
            continue
        owner = found.setdefault(identity, Owner(identity=identity))
        owner.index = owner.index or row.get("index", "")
        owner.rows.append(number)
    return sorted(found.values(), key=lambda owner: (not owner.index, int(owner.index or 0), owner.identity))


def device_names(found: Sequence[Owner], keys: Sequence[Column], notes: Notes) -> list[str]:
    """What the devices are called: by the tool's numbers, else in the order of their identities."""
    match = next((match for key in keys if (match := re.search(r"gpu|npu|mlu|dcu", key.name.casefold()))), None)
    kind = match[0] if match else "gpu"
    names: list[str] = []
    for owner in found:
        name = f"{kind}{int(owner.index)}" if owner.index else ""
        if not name or name in names:
            name = next(
                free for number in range(len(found) + len(names) + 1) if (free := f"{kind}{number}") not in names
            )
            notes.add(f"{owner.identity} is called {name}")
        names.append(name)
    return names


def _best(row: Mapping[str, str]) -> str:
    return next((row[key] for key in _ORDER if key in row), "")


def _meant(key: str, cell: str) -> str:
    """A key cell in one spelling; empty where it is a word for a fault, or cut."""
    if key == "bus":
        return normal_bus_id(cell)
    if key == "uuid":
        return cell if _UUID.fullmatch(cell) else ""
    number = plain_number(cell)
    return str(int(number)) if number is not None and number == int(number) and number >= 0 else ""
