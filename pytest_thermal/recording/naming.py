"""Names of devices within one run: a name stays with the device it was first given to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pytest_thermal.model import Sensor

_NUMBERED = re.compile(r"(.*?)(\d+)")


class Naming:
    """Gives the sensors of one source, when they are found again, the names they had.

    Sources number devices in the order of their identities. When one is gone, those behind it move up when
    they are discovered again: ``gpu1`` would become ``gpu0``, and its readings would continue another card's curve.
    """

    def __init__(self, known: Sequence[Sensor] = ()) -> None:
        self._ids: dict[tuple[str, str, str], str] = {}  # by identity, kind of device and quantity
        self._devices: dict[tuple[str, str], str] = {}  # by identity and kind
        self._owners: dict[str, str] = {}  # identities, by id
        self.assign(known)

    def assign(self, sensors: Sequence[Sensor]) -> tuple[Sensor, ...]:
        """The same sensors in the same order, under ids that no other device of this run has or had."""
        return tuple(self._named(sensor) for sensor in sensors)

    def _named(self, sensor: Sensor) -> Sensor:
        quantity = sensor.id.removeprefix(sensor.device)
        key = (sensor.identity, _kind(sensor.device), quantity)
        if key not in self._ids:
            device = self._device(sensor, quantity)
            self._ids[key] = f"{device}{quantity}"
            self._devices.setdefault(key[:2], device)
            self._owners[self._ids[key]] = sensor.identity
        name = self._ids[key]
        if name == sensor.id:
            return sensor
        return replace(sensor, id=name, device=name.removesuffix(quantity))

    def _device(self, sensor: Sensor, quantity: str) -> str:
        known = self._devices.get((sensor.identity, _kind(sensor.device)), sensor.device)
        if self._owners.get(f"{known}{quantity}", sensor.identity) == sensor.identity:
            return known
        while any(name.startswith(f"{known}.") for name in self._owners):
            known = _following(known)
        return known


def _kind(device: str) -> str:
    match = _NUMBERED.fullmatch(device)
    return match[1] if match else device


def _following(name: str) -> str:
    match = _NUMBERED.fullmatch(name)
    return f"{match[1]}{int(match[2]) + 1}" if match else f"{name}1"
