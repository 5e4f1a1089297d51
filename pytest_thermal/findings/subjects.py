"""Which checks there are, and what each of them is about: the sensors and devices that tests are named by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.kinds import Kind, is_leak_detector, is_pump, kind_of

CHECKS = (
    "coverage",
    "baseline",
    "threshold",
    "rise",
    "settled",
    "load",
    "throttling",
    "pump",
    "leak",
    "rebound",
    "drift",
    "throughput",
)
"""In the order in which a reader wants them."""

INFERENCE = "inference"
"""The subject of ``throughput``."""
THROTTLE_BITS = "throttle_reasons_bits"

_UNNAMED = re.compile(r"device\d+")
"""What the temperature of a log is called whose header does not say whose it is."""
_CORE = re.compile(r"(?:core|ccd)\d*")
_ORDER = {Kind.CPU: 0, Kind.ACCELERATOR: 1, Kind.OTHER: 2}


def subjects(check: str, sensors: Iterable[Sensor], *, inference: bool) -> tuple[str, ...]:
    """What a check is about: ids of sensors, or of devices (load, throttling), or ``inference`` (throughput).

    Args:
        check: One of ``CHECKS``.
        sensors: Of the bench.
        inference: Whether inference requests are part of the load.

    The same set gives the same order: processors, accelerators, others, each by number.

    Raises:
        KeyError: There is no check of that name.
    """
    if check not in CHECKS:
        raise KeyError(f"no thermal check {check!r}; there are: {', '.join(CHECKS)}")
    if check == "throughput":
        return (INFERENCE,) if inference else ()
    ordered = in_order(sensors)
    return _CHOSEN[check](ordered)


def in_order(sensors: Iterable[Sensor]) -> tuple[Sensor, ...]:
    """Sensors by kind of device, number and part."""
    return tuple(sorted({sensor.id: sensor for sensor in sensors}.values(), key=_place))


def is_heated(sensor: Sensor) -> bool:
    """Whether it is a temperature that follows the load: of a processor, an accelerator, or whatever a log is about."""
    return sensor.unit is Unit.CELSIUS and (has_limits(sensor) or _UNNAMED.fullmatch(sensor.device) is not None)


def has_limits(sensor: Sensor) -> bool:
    """Whether it is a processor's or an accelerator's: how hot anything else may get is not known here."""
    return kind_of(sensor.device) is not Kind.OTHER


def main_temperature(device: str, sensors: Iterable[Sensor]) -> Sensor | None:
    """The temperature that stands for a device: the package's, the chip's; or the only one that there is."""
    heated = [sensor for sensor in sensors if sensor.device == device and is_heated(sensor)]
    for name in (f"{device}.package.temperature_celsius", f"{device}.temperature_celsius"):
        for sensor in heated:
            if sensor.id == name:
                return sensor
    return heated[0] if len(heated) == 1 else None


def is_throttle(sensor: Sensor) -> bool:
    """Whether it says for how long, or why, a device slows itself down."""
    if kind_of(sensor.device) is Kind.OTHER:
        return False
    rest = sensor.id.removeprefix(f"{sensor.device}.")
    return rest == THROTTLE_BITS or (rest.startswith("throttle.") and sensor.unit in {Unit.MILLISECONDS, Unit.BITS})


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """For sorting: ``gpu10`` after ``gpu9``."""
    pieces = re.findall(r"\d+|\D+", text)
    return tuple((0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in pieces)


def _place(sensor: Sensor) -> tuple[object, ...]:
    return _ORDER[kind_of(sensor.device)], natural(sensor.device), natural(sensor.id)


def _heated(sensors: Sequence[Sensor]) -> tuple[str, ...]:
    return tuple(sensor.id for sensor in sensors if is_heated(sensor))


def _parts(sensors: Sequence[Sensor]) -> tuple[str, ...]:
    """Heated temperatures, but for the single cores of a processor whose package is measured."""
    return tuple(
        sensor.id
        for sensor in sensors
        if is_heated(sensor) and not (_is_core(sensor) and main_temperature(sensor.device, sensors) is not None)
    )


def _is_core(sensor: Sensor) -> bool:
    part = sensor.id.removeprefix(f"{sensor.device}.").partition(".")[0]
    return kind_of(sensor.device) is Kind.CPU and _CORE.fullmatch(part) is not None


def _mains(sensors: Sequence[Sensor]) -> tuple[str, ...]:
    """One a device: how much a memory or a single core may rise by is nobody's figure."""
    found = (main_temperature(device, sensors) for device in _devices(sensors, is_heated))
    return tuple(sensor.id for sensor in found if sensor is not None)


def _devices(sensors: Sequence[Sensor], wanted: Callable[[Sensor], bool]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sensor.device for sensor in sensors if wanted(sensor)))


_CHOSEN: Mapping[str, Callable[[Sequence[Sensor]], tuple[str, ...]]] = {
    "coverage": lambda sensors: tuple(sensor.id for sensor in sensors),
    "baseline": _parts,
    "threshold": lambda sensors: _heated([sensor for sensor in sensors if has_limits(sensor)]),
    "rise": lambda sensors: _mains([sensor for sensor in sensors if has_limits(sensor)]),
    "settled": _parts,
    "load": lambda sensors: _devices(sensors, is_heated),
    "throttling": lambda sensors: _devices(sensors, is_throttle),
    "pump": lambda sensors: tuple(sensor.id for sensor in sensors if is_pump(sensor)),
    "leak": lambda sensors: tuple(sensor.id for sensor in sensors if is_leak_detector(sensor)),
    "rebound": _parts,
    "drift": _parts,
}
