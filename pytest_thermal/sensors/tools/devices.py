"""Which device a row is of: told by what stays with the device, and refused where it cannot be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_thermal.sensors.sysfs.files import natural, slug
from pytest_thermal.sensors.tools.answer import Raw, Row

CONTROLLER = "mcu"
"""The chip part of the key of a card's own controller: board temperature, the card's power."""

CONFLICT = "(two rows of one answer differ)"
"""The text of a cell that is there twice with different figures; no number, so that it is not understood."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device or chip, as it was found at start."""

    key: str
    identities: tuple[str, ...]
    """Empty where nothing tells it from another but its number or place."""
    card: str
    """``npu1``: how ids call it, or the card it is on."""
    part: str
    """``chip0.`` where the card has several chips, ``board.`` for its controller, else empty."""

    @property
    def identity(self) -> str:
        """The best there is; a number or place says so."""
        return self.identities[0] if self.identities else f"number {self.key}"


def folded(rows: Sequence[Row], *, last: bool) -> list[Row]:
    """One row a device. A second that says the same is the same; of a stream the ``last`` one counts."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        mark = row.identities or ("", row.key)
        before = found.get(mark)
        found[mark] = row if before is None or last else _merged(before, row)
    return list(found.values())


def _merged(one: Row, other: Row) -> Row:
    both: dict[str, Raw] = {**one.cells, **other.cells}
    for name in set(one.cells) & set(other.cells):
        if one.cells[name] != other.cells[name]:
            both[name] = Raw(CONFLICT)
    return replace(one, cells=both, fault=one.fault or other.fault)


def telling(rows: Sequence[Row]) -> list[Row]:
    """The rows, an identity that several devices share taken off: a blank serial number tells nothing."""
    holders: dict[str, set[str]] = {}
    for row in rows:
        for identity in row.identities:
            holders.setdefault(identity, set()).add(row.key)
    return [
        replace(row, identities=tuple(identity for identity in row.identities if len(holders[identity]) == 1))
        for row in rows
    ]


def found_devices(rows: Sequence[Row], name: str, *, whole: bool = True) -> list[Device]:
    """The devices that these rows are of. ``name`` is what ids call one: ``gpu``.

    A chip is called by its number where its card has several. One that is alone is too, where its number is not 0 or
    where the answer is not ``whole`` and other cards have several: the other half of its card is lacking.
    """
    chips: dict[str, list[str]] = {}
    for row in rows:
        card, _, chip = row.key.partition("/")
        chips.setdefault(card, []).append(chip)
    own = {card: [chip for chip in found if chip not in ("", CONTROLLER)] for card, found in chips.items()}
    double = not whole and any(len(found) > 1 for found in own.values())
    devices = []
    for row in sorted(rows, key=lambda row: natural(row.key)):
        card, _, chip = row.key.partition("/")
        several = bool(chip) and (double or own[card] != ["0"])
        part = "board." if chip == CONTROLLER else f"chip{slug(chip)}." if several else ""
        # A card without a number, because it fell off the bus, is called by what is known of it.
        called = row.device or (f"{name}{card}" if card.isdigit() else f"{name}_{slug(card)}")
        devices.append(Device(key=row.key, identities=row.identities, card=called, part=part))
    return devices


def one_number_each(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The rows without those of which several have one number, and why they are left out."""
    times = Counter(row.key for row in rows)
    kept = [row for row in rows if times[row.key] == 1]
    twice = sorted({row.key for row in rows if times[row.key] > 1}, key=natural)
    said = f"several devices are number {', '.join(twice)}: which is which cannot be told" if twice else ""
    return kept, said


class Roll:
    """The devices of the start, to find each one's row in later answers."""

    def __init__(self, devices: Sequence[Device], *, keys_stay: bool = False) -> None:
        self.devices = tuple(devices)
        self._keys_stay = keys_stay
        self._by_identity = {identity: device for device in devices for identity in device.identities}
        self._by_key = {device.key: device for device in devices}
        self._anonymous = {device.key for device in devices if not device.identities}

    def assign(self, rows: Sequence[Row]) -> tuple[Mapping[str, Row], str]:
        """By the device's key at start: its row. And why some rows are nobody's.

        A row that names no identity is taken by its number only if the answer has the very numbers of the start:
        one card less, and the numbers may have moved up.
        """
        assigned: dict[str, Row] = {}
        refused = ""
        nameless = [row for row in rows if not row.identities]
        same_numbers = {row.key for row in nameless} == self._anonymous
        for row in rows:
            named = {self._by_identity[one].key for one in row.identities if one in self._by_identity}
            if len(named) > 1 or (named and self._keys_stay and row.key not in named):
                refused = f"a row mixes two devices: {', '.join(sorted({*named, row.key}))}"
            elif named:
                assigned[named.pop()] = row
            elif row.identities:
                continue
            elif row.fault and row.key in self._by_key:
                # A card that lost its identity with everything else: the number is good enough for bad news.
                assigned.setdefault(row.key, row)
            elif same_numbers:
                assigned[row.key] = row
            else:
                refused = (
                    f"{len(nameless)} rows without an identity where the start had {len(self._anonymous)}: "
                    "whose they are cannot be told"
                )
        return assigned, refused
