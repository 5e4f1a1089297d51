"""What the name of a column says that is in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from pytest_thermal.model import Unit
from pytest_thermal.recording.foreign.cells import Unitful, unit_spelled
from pytest_thermal.recording.layout import OWN
from pytest_thermal.sensors.tools.answer import header
from pytest_thermal.sensors.tools.nvidia_smi import FIELDS


class Role(str, Enum):
    """What a column is for."""

    TIME = "time"
    DATE = "date"
    PHASE = "phase"
    KEY = "key"
    """It tells which device a row is of."""
    VALUE = "value"
    OTHER = "other"
    """Known and of no use here: names, states, versions."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Column:
    """What a column is."""

    name: str
    """As it stands in the file."""
    role: Role
    key: str = ""
    """For a key: ``uuid``, ``bus`` or ``index``."""
    device: str = ""
    """For a value, where the name says it: ``gpu0``."""
    quantity: str = ""
    """``temperature_celsius``, ``memory.temperature_celsius``."""
    unit: Unit | None = None
    spelled: Unitful | None = None
    """The unit of cells that name none, where it is not ours."""
    guessed: bool = False
    """Whether the unit is only what such a name mostly means."""
    seconds: float = 1.0
    """For a time that only counts: what one of it is in seconds."""


_TIMES = {
    *("time", "timestamp", "time stamp", "datetime", "date time", "date/time", "clock time", "ts", "t"),
    *("unix", "unixtime", "unix time", "epoch", "elapsed", "seconds", "secs", "sec", "uptime"),
    *("zeit", "uhrzeit", "时间", "时间戳"),
}
_DATES = {"date", "datum", "日期", "yyyymmdd"}
_PHASES = {"phase", "阶段"}
_KEYS = {
    **dict.fromkeys(("uuid", "gpu uuid"), "uuid"),
    **dict.fromkeys(("pci.bus id", "gpu bus id", "pci bus id", "bus id", "bus-id"), "bus"),
    **dict.fromkeys(("index", "gpu index", "gpu idx", "idx", "gpu id", "minor number"), "index"),
    **dict.fromkeys(("npu id", "mlu id", "dcu id", "card", "device", "device id", "deviceid"), "index"),
}
_OTHERS = {
    *("name", "gpu name", "gpu_name", "serial", "count", "host", "hostname", "node", "pstate", "driver_version"),
    *("pci.bus", "pci.domain", "pci.device", "pcie.link.gen.current", "pcie.link.width.current", "vbios_version"),
    *("compute_mode", "persistence_mode", "display_mode", "mig.mode.current", "gpu_recovery_action"),
    *("clocks_event_reasons.supported", "clocks_throttle_reasons.supported"),
    *("memory.total", "memory.free", "enforced.power.limit", "power.limit"),
}
_NVIDIA = {name: field for field in FIELDS for name in field.names}
_ONLY_DMON = {name for name in _NVIDIA if "." not in name and "/" not in name}
"""Short names that mean this only beside a column that says which GPU."""

_OUR_ID = re.compile(r"(?P<device>[a-z][a-z_]*\d*)\.(?P<quantity>(?:[a-z0-9_]+\.)*[a-z0-9_]+)")
_PREFIXED = re.compile(r"(?P<device>(?:gpu|npu|mlu|dcu)[ _]?\d+)[ ._:/-]+(?P<rest>.+)", re.IGNORECASE)
_TIME_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "seconds"), 1.0),
    **dict.fromkeys(("ms", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "microseconds"), 1e-6),
    **dict.fromkeys(("min", "minutes"), 60.0),
    **dict.fromkeys(("h", "hours"), 3600.0),
}

_SUFFIXES = (
    (r"[_ .](?:degrees?|deg)?[_ ]?(?:c|celsius)$|celsius$", Unitful(Unit.CELSIUS, 1.0)),
    (r"[_ .](?:mc|millidegrees?(?:[_ ]?c)?|millicelsius|mdeg)$", Unitful(Unit.CELSIUS, 1e-3)),
    (r"[_ .](?:f|fahrenheit|degf)$", Unitful(Unit.CELSIUS, 5 / 9, -160 / 9)),
    (r"[_ .](?:w|watts?)$", Unitful(Unit.WATTS, 1.0)),
    (r"[_ .](?:mw|milliwatts?)$", Unitful(Unit.WATTS, 1e-3)),
    (r"[_ .](?:uw|microwatts?)$", Unitful(Unit.WATTS, 1e-6)),
    (r"[_ .](?:pct|percent|perc)$|%$", Unitful(Unit.PERCENT, 1.0)),
    (r"[_ .](?:mhz|megahertz)$", Unitful(Unit.MEGAHERTZ, 1.0)),
    (r"[_ .]khz$", Unitful(Unit.MEGAHERTZ, 1e-3)),
    (r"[_ .](?:ghz)$", Unitful(Unit.MEGAHERTZ, 1e3)),
    (r"[_ .]?rpm$", Unitful(Unit.RPM, 1.0)),
    (r"[_ .](?:lpm|l[_ ]min|liters[_ ]per[_ ]minute)$", Unitful(Unit.LITERS_PER_MINUTE, 1.0)),
    (r"[_ .](?:v|volts?)$", Unitful(Unit.VOLTS, 1.0)),
)

_WORDS: tuple[tuple[str, Unit, str], ...] = (
    (r"temp(?:erature)?s?(?:\d|\b)|\btemp|\bthermal|^t (?=[a-z])|温度", Unit.CELSIUS, "temperature_celsius"),
    (r"power|watt|功率|leistung|\bpwr\b", Unit.WATTS, "power_watts"),
    # Not "load": without a percent sign that is how many processes wait.
    (r"util|usage|\bbusy\b|利用率|auslastung", Unit.PERCENT, "utilization_percent"),
    (r"clock|freq|频率|takt", Unit.MEGAHERTZ, "clock_megahertz"),
    (r"rpm|speed|转速|drehzahl", Unit.RPM, "speed_rpm"),
    (r"flow|流量|durchfluss", Unit.LITERS_PER_MINUTE, "flow_liters_per_minute"),
    (r"volt|\bvcore\b|电压", Unit.VOLTS, "voltage_volts"),
)
_QUANTITY = {unit: quantity for _, unit, quantity in _WORDS}

_LIQUID = r"(?:coolant|water|liquid|loop|冷却液|水)"
_DEVICES = (
    (r"(?<![a-z])(gpu|npu|mlu|dcu)[ _#-]?(\d+)?(?![a-z])", ""),
    (r"(?<![a-z])(?:pump|泵|pumpe)[ _#-]?(\d+)?(?![a-z])", "pump"),
    (rf"{_LIQUID}\D*?(?:supply|inlet|in\b|cold|供|进)", "coolant_supply"),
    (r"(?<![a-z])(?:supply|inlet)[ _]?(?:coolant|water)", "coolant_supply"),
    (rf"{_LIQUID}\D*?(?:return|outlet|out\b|hot|回|出)", "coolant_return"),
    (r"(?<![a-z])(?:return|outlet)[ _]?(?:coolant|water)", "coolant_return"),
    (_LIQUID, "coolant"),
    (r"(?<![a-z])(?:ambient|room|环境)", "ambient"),
    (r"(?<![a-z])(?:cpu|soc|processor|tctl|tdie|x86_pkg|coretemp|k10temp|vcore)[ _#-]?(?:(\d+)(?![a-z]))?", "cpu"),
    (r"(?<![a-z])fan[ _#-]?(\d+)?(?![a-z])", "fan"),
    (r"(?<![a-z])(?:nvme|ssd)[ _#-]?(\d+)?(?![a-z])", "nvme"),
)
_SINGLE = {"coolant_supply", "coolant_return", "coolant", "ambient"}
_PARTS = (
    (r"(?<![a-z])core[ _#-]?(\d+)", "core"),
    (r"(?<![a-z])(?:memory|mem|hbm|vram|显存)(?![a-z])", "memory"),
    (r"(?<![a-z])(?:hot[ _]?spot|junction)", "hotspot"),
    (r"(?<![a-z])vrm(?![a-z])", "vrm"),
    (r"(?<![a-z])(?:package|pkg)(?![a-z])", "package"),
    (r"(?<![a-z])(tctl|tdie|tccd\d*)", ""),
)
_UNIT_WORDS = {
    *("c", "f", "t", "deg", "degc", "celsius", "mc", "w", "watts", "mw", "uw"),
    *("pct", "percent", "mhz", "ghz", "rpm", "v", "lpm"),
}
_DMON_NAMES = {"gtemp", "mtemp", "pwr", "mclk", "pclk"}
_BARE_KEY = re.compile(r"gpu|npu|mlu|dcu")
_BARE_DEVICE = re.compile(r"(?:cpu|gpu|npu|mlu|dcu)[ _#]?\d*")


def column(name: str) -> Column:
    """What a column of that name is."""
    bare, bracket = header(name.strip().strip("#").strip())
    spelled = unit_spelled(bracket) if bracket else None
    if name.startswith(OWN):
        return Column(name=name, role=Role.OTHER)
    found = _by_role(name, bare, bracket)
    if found is not None:
        return found
    ours = _OUR_ID.fullmatch(bare)
    if ours is not None:
        unit = next((unit for unit in Unit if ours["quantity"].endswith(unit.value)), None)
        if unit is not None:
            return Column(
                name=name, role=Role.VALUE, device=ours["device"], quantity=ours["quantity"], unit=unit, spelled=spelled
            )
    prefixed = _PREFIXED.fullmatch(bare)
    rest = prefixed["rest"] if prefixed else bare
    field = _NVIDIA.get(rest)
    if field is not None and not (prefixed is None and rest in _ONLY_DMON):
        device = re.sub(r"[ _]", "", prefixed["device"]).casefold() if prefixed else ""
        given = spelled or (Unitful(field.unit, field.scale) if field.scale != 1.0 else None)
        return Column(
            name=name, role=Role.VALUE, device=device, quantity=field.quantity, unit=field.unit, spelled=given
        )
    return _by_words(name, bare, spelled)


def columns_of(header: list[str]) -> list[Column]:
    """What the columns of a header are, each in the light of the others."""
    found = [column(name) for name in header]
    short = [dmon_column(name) for name in header]
    if _DMON_NAMES & {header_name(name) for name in header} and any(one and one.role is Role.KEY for one in short):
        return [one or other for one, other in zip(short, found, strict=True)]
    # "gpu" is a temperature beside "cpu", and a number beside "temperature".
    if any(one.role is Role.VALUE and not one.device for one in found):
        return [
            Column(name=one.name, role=Role.KEY, key="index") if _BARE_KEY.fullmatch(header_name(one.name)) else one
            for one in found
        ]
    return found


def header_name(name: str) -> str:
    """A column's name without its unit, in one spelling."""
    return header(name.strip().strip("#").strip())[0]


def dmon_column(name: str) -> Column | None:
    """What a short column of ``nvidia-smi dmon`` is: ``gtemp``, ``pwr``; None where it is none of those."""
    bare, bracket = header(name.strip().strip("#").strip())
    if bare == "gpu":
        return Column(name=name, role=Role.KEY, key="index")
    field = _NVIDIA.get(bare)
    if field is None:
        return None
    spelled = unit_spelled(bracket) if bracket else None
    return Column(name=name, role=Role.VALUE, quantity=field.quantity, unit=field.unit, spelled=spelled)


def _by_role(name: str, bare: str, bracket: str) -> Column | None:
    plain = bare.replace("_", " ")
    if bare in _OTHERS:
        return Column(name=name, role=Role.OTHER)
    if bare in _PHASES:
        return Column(name=name, role=Role.PHASE)
    if plain in _KEYS:
        return Column(name=name, role=Role.KEY, key=_KEYS[plain])
    if bare in _DATES:
        return Column(name=name, role=Role.DATE)
    if plain in _TIMES:
        return Column(name=name, role=Role.TIME, seconds=_TIME_UNITS.get(bracket.casefold(), 1.0))
    head, _, unit = plain.rpartition(" ")
    if head in _TIMES and unit in _TIME_UNITS:
        return Column(name=name, role=Role.TIME, seconds=_TIME_UNITS[unit])
    return None


def _by_words(name: str, bare: str, spelled: Unitful | None) -> Column:
    text = bare.replace("_", " ").replace("[", " ").replace("]", " ")
    if spelled is None:
        spelled = next((unit for pattern, unit in _SUFFIXES if re.search(pattern, bare)), None)
    unit = spelled.unit if spelled else next((unit for pattern, unit, _ in _WORDS if re.search(pattern, text)), None)
    guessed = unit is None and _BARE_DEVICE.fullmatch(text) is not None
    if guessed:
        unit = Unit.CELSIUS  # "time,cpu,gpu" is what temperature loggers write
    if unit is None or unit not in _QUANTITY:
        return Column(name=name, role=Role.UNKNOWN)
    return _value_column(name, text, unit, spelled, guessed=guessed)


def column_by_cells(of: Column, unit: Unit) -> Column:
    """A column whose cells say what the name does not: ``1800MHz`` under "CPU"."""
    if unit not in _QUANTITY:
        return of
    text = header_name(of.name).replace("_", " ")
    return _value_column(of.name, text, unit, None, guessed=False)


def _value_column(name: str, text: str, unit: Unit, spelled: Unitful | None, *, guessed: bool) -> Column:
    quantity = _QUANTITY[unit]
    device = _device(text)
    turns = re.search(r"(?<![a-z])fan|风扇|lüfter", text) is not None
    if turns and unit is Unit.PERCENT:
        quantity = "speed_percent"
    if turns and not device.startswith("fan") and unit in {Unit.RPM, Unit.PERCENT}:
        quantity = f"fan.{quantity}"
    part = next((_part(match, part) for pattern, part in _PARTS if (match := re.search(pattern, text))), "")
    if not device and part.startswith(("core", "package", "tctl", "tdie", "tccd")):
        device = "cpu0"
    if not device:
        part = ""  # the name as a whole will be the device
    return Column(
        name=name,
        role=Role.VALUE,
        device=device,
        quantity=f"{part}.{quantity}" if part else quantity,
        unit=unit,
        spelled=spelled,
        guessed=guessed,
    )


def _device(text: str) -> str:
    for pattern, device in _DEVICES:
        match = re.search(pattern, text)
        if match is None:
            continue
        groups = [group for group in match.groups() if group]
        if not device:
            return groups[0] + (groups[1] if len(groups) > 1 else "0")
        if device in _SINGLE:
            return device
        return device + (groups[0] if groups else "0")
    return ""


def called(name: str) -> str:
    """What is left of a name without quantity and unit: ``inlet`` of "inlet temp"; ``device0`` where nothing is."""
    words = re.findall(r"[a-z]+\d*|\d+", header_name(name).replace("_", " "))
    left = [word for word in words if not any(re.search(pattern, word) for pattern, _, _ in _WORDS)]
    left = [word for word in left if word not in _UNIT_WORDS]
    number = next((match[0] for word in words if (match := re.search(r"\d+$", word))), "0")
    return "_".join(left) if any(word[0].isalpha() for word in left) else f"device{number}"


def _part(match: re.Match[str], part: str) -> str:
    number = match[1] if match.groups() else ""
    return f"{part}{number}"
