"""NVIDIA's own library, asked within this process: the surest and cheapest source of its GPUs.

``nvidia-ml-py`` is imported when the source is used, and need not be installed. Field numbers that have moved between
driver versions are not used: an older driver would answer with another quantity.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.model.said import joined, say
from pytest_thermal.sensors.plausibility import plausible_limits
from pytest_thermal.sensors.source import Absent, Availability

NAME = "nvml"

_MEMORY_TEMPERATURE_FIELD = 82
_INSTANT_POWER_FIELD = 186
_GPU, _SM_CLOCK, _MEMORY_CLOCK = 0, 1, 2
_POWER_POLICY, _THERMAL_POLICY = 0, 1
_THRESHOLDS = {"shutdown": 0, "slowdown": 1, "max": 3}
_MEMORY_THRESHOLDS = {"max": 2}

_NOT_OFFERED = frozenset({2, 3, 6, 13, 26})
"""Invalid argument, not supported, not found, no such function, deprecated."""
_NO_PERMISSION, _TIMEOUT = 4, 10
_UNINITIALIZED, _DRIVER_NOT_LOADED, _UNKNOWN = 1, 9, 999
_DEVICE_GONE = frozenset({15, 16, 28})
"""Lost, needs a reset, not found: no other question to the device is worth asking."""
_SESSION_GONE = frozenset({_UNINITIALIZED, _DRIVER_NOT_LOADED, _UNKNOWN})
"""What every call gives once the process has lost its devices; a new session may have them."""


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One figure of a GPU."""

    name: str
    unit: Unit
    label: str
    take: Callable[[Any, Any], float]
    """From the library and the device's handle."""
    zero_is_blank: bool = False


def _field(number: int) -> Callable[[Any, Any], float]:
    def take(library: Any, handle: Any) -> float:
        answer = library.nvmlDeviceGetFieldValues(handle, [number])[0]
        if answer.nvmlReturn:
            raise library.NVMLError(answer.nvmlReturn)
        names = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
        return float(getattr(answer.value, names[answer.valueType]))

    return take


def _milliseconds(policy: int) -> Callable[[Any, Any], float]:
    return lambda library, handle: library.nvmlDeviceGetViolationStatus(handle, policy).violationTime / 1e6


def _reasons(library: Any, handle: Any) -> float:
    try:
        return float(library.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except (AttributeError, library.NVMLError):
        # Its name before driver 535.
        return float(library.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


QUANTITIES = (
    Quantity(
        name="temperature_celsius",
        unit=Unit.CELSIUS,
        label="GPU temperature",
        take=lambda library, handle: library.nvmlDeviceGetTemperature(handle, _GPU),
    ),
    Quantity(
        name="memory.temperature_celsius",
        unit=Unit.CELSIUS,
        label="memory temperature",
        take=_field(_MEMORY_TEMPERATURE_FIELD),
        zero_is_blank=True,
    ),
    Quantity(
        name="temperature_kelvin_margin",
        unit=Unit.KELVIN_MARGIN,
        label="margin to the temperature limit",
        take=lambda library, handle: library.nvmlDeviceGetMarginTemperature(handle),
    ),
    Quantity(
        name="power_watts",
        unit=Unit.WATTS,
        label="power usage, of recent models the mean of a second",
        take=lambda library, handle: library.nvmlDeviceGetPowerUsage(handle) / 1000.0,
    ),
    Quantity(
        name="instant.power_watts",
        unit=Unit.WATTS,
        label="power of the moment",
        take=lambda library, handle: _field(_INSTANT_POWER_FIELD)(library, handle) / 1000.0,
    ),
    Quantity(
        name="utilization_percent",
        unit=Unit.PERCENT,
        label="GPU utilization",
        take=lambda library, handle: library.nvmlDeviceGetUtilizationRates(handle).gpu,
    ),
    Quantity(
        name="memory.used_bytes",
        unit=Unit.BYTES,
        label="memory used",
        take=lambda library, handle: library.nvmlDeviceGetMemoryInfo(handle).used,
    ),
    Quantity(
        name="fan.speed_percent",
        unit=Unit.PERCENT,
        label="fan speed",
        take=lambda library, handle: library.nvmlDeviceGetFanSpeed(handle),
    ),
    Quantity(
        name="clock_megahertz",
        unit=Unit.MEGAHERTZ,
        label="SM clock",
        take=lambda library, handle: library.nvmlDeviceGetClockInfo(handle, _SM_CLOCK),
    ),
    Quantity(
        name="memory.clock_megahertz",
        unit=Unit.MEGAHERTZ,
        label="memory clock",
        take=lambda library, handle: library.nvmlDeviceGetClockInfo(handle, _MEMORY_CLOCK),
    ),
    Quantity(name="throttle_reasons_bits", unit=Unit.BITS, label="clocks event reasons", take=_reasons),
    Quantity(
        name="throttle.power_cap_milliseconds",
        unit=Unit.MILLISECONDS,
        label="violation time, power policy",
        take=_milliseconds(_POWER_POLICY),
    ),
    Quantity(
        name="throttle.thermal_milliseconds",
        unit=Unit.MILLISECONDS,
        label="violation time, thermal policy",
        take=_milliseconds(_THERMAL_POLICY),
    ),
)


def make(*, only: str = "") -> Nvml:
    """The source; ``only`` has the indices of the wanted GPUs, with commas, empty for all."""
    return Nvml(only=frozenset(filter(None, (one.strip() for one in only.split(",")))))


@dataclass
class _Device:
    index: int
    identity: str
    handle: Any
    """None for one that cannot be asked about."""
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class _Taken:
    reading: Reading
    code: int = 0
    """NVML's error."""


class Nvml:
    """Every GPU of this machine."""

    name = NAME

    def __init__(self, *, only: frozenset[str] = frozenset(), library: Any = None) -> None:
        """``library`` is the module to ask, ``pynvml`` where not given."""
        self._only = only
        self._library = library
        self._open = False
        self._devices: list[_Device] = []
        self._places: list[tuple[Sensor, _Device, Quantity]] = []
        self._absent: list[Absent] = []
        self._availability: Availability | None = None
        self._new_session_left = True

    # ------------------------------------------------------------------------------------------- the protocol

    def probe(self) -> Availability:
        """Whether the library and its driver are there and show a GPU."""
        if self._availability is None:
            self._availability = self._discover()
        return self._availability

    def sensors(self) -> Sequence[Sensor]:
        """What the GPUs offer, by UUID."""
        self.probe()
        return tuple(sensor for sensor, _, _ in self._places)

    def absent(self) -> Sequence[Absent]:
        """What they say that they do not offer."""
        self.probe()
        return tuple(self._absent)

    def read(self) -> Sequence[Reading]:
        """One reading of each."""
        self.probe()
        taken = self._round()
        if any(one.reading.value is not None for one in taken):
            self._new_session_left = True
        elif self._new_session_left and any(one.code in _SESSION_GONE for one in taken):
            # As after "systemctl daemon-reload" in a container. Once: where that does not help, nothing will.
            self._new_session_left = False
            self._begin_again()
            taken = self._round()
        return [one.reading for one in taken]

    def close(self) -> None:
        """End the session."""
        if self._open:
            self._open = False
            with contextlib.suppress(self._library.NVMLError):
                self._library.nvmlShutdown()

    # --------------------------------------------------------------------------------------------- discovery

    def _discover(self) -> Availability:
        if self._library is None:
            try:
                self._library = importlib.import_module("pynvml")
            except ImportError:
                return Availability(
                    ok=False, reason=say('nvidia-ml-py is not installed (try: pip install "nvidia-ml-py>=12")')
                )
        try:
            self._library.nvmlInit()
            self._open = True
            count = self._library.nvmlDeviceGetCount()
        except self._library.NVMLError as error:
            return Availability(ok=False, reason=say("NVML: {error}", error=error))
        self._devices = [self._device(index) for index in range(count) if not self._only or str(index) in self._only]
        if not self._devices:
            wanted = (
                say("none of the GPUs asked for ({names})", names=joined(", ", sorted(self._only)))
                if count
                else say("no GPU")
            )
            return Availability(ok=False, reason=say("NVML shows {wanted}", wanted=wanted))
        offered = {
            quantity.name for device in self._devices for quantity in QUANTITIES if self._offers(device, quantity)
        }
        for device in sorted(self._devices, key=lambda one: one.identity):
            self._settle(device, offered)
        if not self._places:
            return Availability(ok=False, reason=say("its GPUs offer none of the figures looked for"))
        return Availability(ok=True)

    def _device(self, index: int) -> _Device:
        library = self._library
        try:
            handle = library.nvmlDeviceGetHandleByIndex(index)
        except library.NVMLError as error:
            return _Device(index=index, identity=f"number {index}", handle=None, fault=f"{error}")
        try:
            identity = _text(library.nvmlDeviceGetUUID(handle))
        except library.NVMLError as error:
            # Without it, the device cannot be told from another after a new session.
            return _Device(index=index, identity=f"number {index}", handle=None, fault=f"its UUID: {error}")
        return _Device(index=index, identity=identity, handle=handle)

    def _offers(self, device: _Device, quantity: Quantity) -> bool:
        return self._take(device, quantity, f"gpu{device.index}").reading.missing is not Missing.NOT_OFFERED

    def _settle(self, device: _Device, offered: set[str]) -> None:
        for quantity in QUANTITIES:
            sensor = Sensor(
                id=f"gpu{device.index}.{quantity.name}",
                unit=quantity.unit,
                device=f"gpu{device.index}",
                identity=device.identity,
                source=self.name,
                label=quantity.label,
                limits=self._limits(device, quantity),
            )
            reading = self._take(device, quantity, sensor.id).reading
            if reading.missing in {Missing.NOT_OFFERED, Missing.UNREADABLE}:
                self._absent.append(Absent(sensor=sensor, reading=reading))
            elif quantity.name in offered:
                self._places.append((sensor, device, quantity))

    def _limits(self, device: _Device, quantity: Quantity) -> Mapping[str, float]:
        library, handle = self._library, device.handle
        asks: dict[str, Callable[[], float]] = {}
        if quantity.name == "temperature_celsius":
            asks = {name: self._threshold(handle, number) for name, number in _THRESHOLDS.items()}
        elif quantity.name == "memory.temperature_celsius":
            asks = {name: self._threshold(handle, number) for name, number in _MEMORY_THRESHOLDS.items()}
        elif quantity.name == "power_watts":
            asks = {"cap": lambda: library.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000.0}
        elif quantity.name == "memory.used_bytes":
            asks = {"max": lambda: library.nvmlDeviceGetMemoryInfo(handle).total}
        elif quantity.name == "clock_megahertz":
            asks = {"max": lambda: library.nvmlDeviceGetMaxClockInfo(handle, _SM_CLOCK)}
        found = {}
        for name, ask in asks.items():
            try:
                found[name] = float(ask())
            except (library.NVMLError, AttributeError):
                continue
        return plausible_limits(quantity.unit, found)

    def _threshold(self, handle: Any, number: int) -> Callable[[], float]:
        return lambda: self._library.nvmlDeviceGetTemperatureThreshold(handle, number)

    # ----------------------------------------------------------------------------------------------- reading

    def _round(self) -> list[_Taken]:
        taken: list[_Taken] = []
        gone: dict[int, _Taken] = {}
        for sensor, device, quantity in self._places:
            known = gone.get(device.index)
            if known is not None:
                reading = Reading(sensor_id=sensor.id, missing=Missing.DEVICE_ERROR, detail=known.reading.detail)
                taken.append(_Taken(reading=reading, code=known.code))
                continue
            one = self._take(device, quantity, sensor.id)
            taken.append(one)
            if one.code in _DEVICE_GONE:
                gone[device.index] = one
        return taken

    def _take(self, device: _Device, quantity: Quantity, sensor_id: str) -> _Taken:
        def missing(why: Missing, detail: str, code: int = 0) -> _Taken:
            return _Taken(reading=Reading(sensor_id=sensor_id, missing=why, detail=detail), code=code)

        if device.handle is None:
            return missing(Missing.DEVICE_ERROR, device.fault)
        try:
            value = float(quantity.take(self._library, device.handle))
        except AttributeError:
            return missing(Missing.NOT_OFFERED, say("this version of nvidia-ml-py does not know it"))
        except self._library.NVMLError as error:
            return missing(_meaning(error.value), f"{error}", error.value)
        if value == 0.0 and quantity.zero_is_blank:
            return missing(Missing.NOT_OFFERED, "raw 0: there is no such sensor")
        return _Taken(reading=Reading(sensor_id=sensor_id, value=value))

    def _begin_again(self) -> None:
        """A new session; each device is found again by its UUID, never by its place."""
        library = self._library
        self.close()
        try:
            library.nvmlInit()
            self._open = True
        except library.NVMLError as error:
            for device in self._devices:
                device.handle, device.fault = None, f"{error}"
            return
        for device in self._devices:
            try:
                device.handle = library.nvmlDeviceGetHandleByUUID(device.identity)
            except library.NVMLError as error:
                device.handle, device.fault = None, f"{error}"


def _meaning(code: int) -> Missing:
    if code in _NOT_OFFERED:
        return Missing.NOT_OFFERED
    if code == _NO_PERMISSION:
        return Missing.UNREADABLE
    return Missing.TIMEOUT if code == _TIMEOUT else Missing.DEVICE_ERROR


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
