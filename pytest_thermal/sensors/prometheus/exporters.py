"""Exporters that are known by their metrics' names: what each series is, in the words of our own sources.

Names, units and blanks: dcgm-exporter's default-counters.csv, Ascend's npu-exporter, node_exporter's hwmon,
thermal_zone and rapl collectors, ipmi_exporter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_thermal.model import Unit
from pytest_thermal.model.said import say
from pytest_thermal.sensors.bmc_names import called, left_out, measures
from pytest_thermal.sensors.prometheus.answer import Sample
from pytest_thermal.sensors.sysfs.files import natural, slug
from pytest_thermal.sensors.sysfs.tree import numbered
from pytest_thermal.sensors.tools.figures import absent

_MIB = 2.0**20


@dataclass(frozen=True, kw_only=True)
class Named:
    """A series as a sensor."""

    sample: Sample
    device: str
    quantity: str
    """With its unit, and the part where it is of one: ``memory.temperature_celsius``."""
    unit: Unit
    scale: float = 1.0
    """What one of the exporter's is in ``unit``."""
    identity: str
    label: str
    left_out: str = ""
    """Why it is not recorded."""
    counts_joules: bool = False
    """Whether it is a counter, whose growth is power."""
    zero_is_blank: bool = False
    of_card: bool = True
    """Whether what shares a card (MIG instances, pods) shows the same figure."""

    @property
    def sensor_id(self) -> str:
        """Of the sensor."""
        return f"{self.device}.{self.quantity}"


@dataclass(frozen=True, kw_only=True)
class _Metric:
    quantity: str
    unit: Unit
    scale: float = 1.0
    zero_is_blank: bool = False
    of_card: bool = True
    counts_joules: bool = False


_DCGM = {
    "DCGM_FI_DEV_GPU_TEMP": _Metric(quantity="temperature_celsius", unit=Unit.CELSIUS),
    "DCGM_FI_DEV_MEMORY_TEMP": _Metric(quantity="memory.temperature_celsius", unit=Unit.CELSIUS, zero_is_blank=True),
    "DCGM_FI_DEV_POWER_USAGE": _Metric(quantity="power_watts", unit=Unit.WATTS),
    "DCGM_FI_DEV_GPU_UTIL": _Metric(quantity="utilization_percent", unit=Unit.PERCENT, of_card=False),
    "DCGM_FI_DEV_FB_USED": _Metric(quantity="memory.used_bytes", unit=Unit.BYTES, scale=_MIB, of_card=False),
    "DCGM_FI_DEV_FAN_SPEED": _Metric(quantity="fan.speed_percent", unit=Unit.PERCENT),
    "DCGM_FI_DEV_SM_CLOCK": _Metric(quantity="clock_megahertz", unit=Unit.MEGAHERTZ),
    "DCGM_FI_DEV_MEM_CLOCK": _Metric(quantity="memory.clock_megahertz", unit=Unit.MEGAHERTZ),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": _Metric(quantity="throttle_reasons_bits", unit=Unit.BITS),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": _Metric(quantity="throttle_reasons_bits", unit=Unit.BITS),
}
_NPU = {
    "npu_chip_info_temperature": _Metric(quantity="temperature_celsius", unit=Unit.CELSIUS),
    "npu_chip_info_hbm_temperature": _Metric(
        quantity="memory.temperature_celsius", unit=Unit.CELSIUS, zero_is_blank=True
    ),
    "npu_chip_info_power": _Metric(quantity="power_watts", unit=Unit.WATTS),
    "npu_chip_info_utilization": _Metric(quantity="utilization_percent", unit=Unit.PERCENT),
    "npu_chip_info_hbm_used_memory": _Metric(quantity="memory.used_bytes", unit=Unit.BYTES, scale=_MIB),
    "npu_chip_info_aicore_current_freq": _Metric(quantity="clock_megahertz", unit=Unit.MEGAHERTZ),
}
_HWMON = {
    "node_hwmon_temp_celsius": _Metric(quantity="temperature_celsius", unit=Unit.CELSIUS),
    "node_hwmon_fan_rpm": _Metric(quantity="speed_rpm", unit=Unit.RPM),
    "node_hwmon_power_average_watt": _Metric(quantity="power_watts", unit=Unit.WATTS),
    "node_hwmon_power_watt": _Metric(quantity="power_watts", unit=Unit.WATTS),
}
_ZONES = {"node_thermal_zone_temp": _Metric(quantity="temperature_celsius", unit=Unit.CELSIUS)}
_RAPL = {
    f"node_rapl_{part}_joules_total": _Metric(quantity="power_watts", unit=Unit.WATTS, counts_joules=True)
    for part in ("package", "core", "uncore", "dram", "psys")
}
_IPMI = {
    "ipmi_temperature_celsius": _Metric(quantity="temperature_celsius", unit=Unit.CELSIUS),
    "ipmi_fan_speed_rpm": _Metric(quantity="speed_rpm", unit=Unit.RPM),
    "ipmi_fan_speed_ratio": _Metric(quantity="speed_percent", unit=Unit.PERCENT, scale=100.0),
    "ipmi_power_watts": _Metric(quantity="power_watts", unit=Unit.WATTS),
}
_DCMI = dict.fromkeys(
    ("ipmi_dcmi_power_consumption_watts", "ipmi_dcmi_power_consumption_current_watts"),
    _Metric(quantity="power_watts", unit=Unit.WATTS),
)

METRICS: Mapping[str, _Metric] = {**_DCGM, **_NPU, **_HWMON, **_ZONES, **_RAPL, **_IPMI, **_DCMI}
FACTS = ("node_hwmon_chip_names", "node_hwmon_sensor_label")
"""What tells the names of chips and inputs."""
UNITS: Mapping[str, tuple[Unit, float]] = {
    name: (metric.unit, metric.scale) for name, metric in METRICS.items() if not metric.counts_joules
}
"""By a known metric: what it measures, and what one of its numbers is in ours."""

_IPMI_UNITS = {
    Unit.CELSIUS: "degrees C", Unit.RPM: "RPM", Unit.PERCENT: "percent", Unit.WATTS: "Watts",
}  # fmt: skip
_IPMI_QUANTITIES = {"margin": ("temperature_kelvin_margin", Unit.KELVIN_MARGIN)}
_CPU_CHIPS = frozenset({"coretemp", "k10temp", "zenpower", "zhaoxin_cputemp", "via_cputemp", "cpu_hwmon", "cpu-hwmon"})
_PARTS_LEFT_OUT = say("left out: the package's is recorded")
_DCGM_BLANK_BIG = 140_737_488_355_328.0
"""Its blank of floating point; those of 64 bits are above."""
_DCGM_BLANKS = range(2_147_483_632, 2_147_483_648)
_NPU_ERRORS = frozenset({-1.0, 4_294_967_295.0})


def blank(sample: Sample) -> str:
    """What it is that stands where an exporter has no value; empty where it is one."""
    is_blank = sample.value >= _DCGM_BLANK_BIG or sample.value in _DCGM_BLANKS
    return say("DCGM's blank") if sample.name in _DCGM and is_blank else ""


def broken(sample: Sample) -> str:
    """What it is that stands where an exporter failed to read a device; empty where it is none."""
    return say("the exporter's word for a failed read") if sample.name in _NPU and sample.value in _NPU_ERRORS else ""


def sensors_of(samples: Sequence[Sample]) -> list[Named]:
    """Each series of a known exporter as a sensor; several may be one sensor."""
    makers: tuple[tuple[Mapping[str, _Metric], Callable[[Sequence[Sample]], list[Named]]], ...] = (
        (_DCGM, lambda found: _cards(found, _DCGM, "gpu", ("gpu", "device"), ("UUID",))),
        (_NPU, lambda found: _cards(found, _NPU, "npu", ("id", "npuID"), ("vdie_id", "uuid", "pcie_bus_info", "pcie"))),
        (_HWMON, lambda found: _hwmon(found, samples)),
        (_ZONES, lambda found: _zones(found, samples)),
        (_RAPL, lambda found: [named for one in found if (named := _rapl(one))]),
        (_IPMI, _ipmi),
        (_DCMI, lambda found: [_named(one, _DCMI[one.name], device="system", identity="dcmi") for one in found]),
    )
    result: list[Named] = []
    for metrics, make in makers:
        mine = [one for one in samples if one.name in metrics]
        result += make(sorted(mine, key=lambda one: natural(str(sorted(one.labels.items()))))) if mine else []
    return result


def _named(sample: Sample, metric: _Metric, *, device: str, identity: str, part: str = "", label: str = "") -> Named:
    return Named(
        sample=sample,
        device=device,
        quantity=f"{part}{metric.quantity}",
        unit=metric.unit,
        scale=metric.scale,
        identity=identity,
        label=label or sample.name,
        zero_is_blank=metric.zero_is_blank,
        of_card=metric.of_card,
        counts_joules=metric.counts_joules,
    )


def _label(sample: Sample, *names: str) -> str:
    return next((sample.labels[name] for name in names if not absent(sample.labels.get(name, ""))), "")


def _cards(
    found: Sequence[Sample],
    metrics: Mapping[str, _Metric],
    device: str,
    numbers: Sequence[str],
    identities: Sequence[str],
) -> list[Named]:
    """Cards and chips. Both chips of one card may show its address, which tells neither then."""
    cards = [_card(one, metrics, device, numbers, identities) for one in found]
    holders: dict[str, set[str]] = {}
    for one in cards:
        holders.setdefault(one.identity, set()).add(one.device)
    return [
        one if len(holders[one.identity]) == 1 else replace(one, identity=f"{one.identity} {one.device}")
        for one in cards
    ]


def _card(
    sample: Sample, metrics: Mapping[str, _Metric], device: str, numbers: Sequence[str], identities: Sequence[str]
) -> Named:
    number = re.sub(r"\D", "", _label(sample, *numbers))
    identity = _label(sample, *identities) or f"number {number or '?'}"
    name = f"{device}{number}" if number else f"{device}_{slug(identity)}"
    return _named(sample, metrics[sample.name], device=name, identity=identity)


def _hwmon(found: Sequence[Sample], facts: Sequence[Sample]) -> list[Named]:
    """Chips by their drivers' names and inputs by their labels, as the hwmon source calls them."""
    drivers = {
        (_host(one), one.labels.get("chip", "")): one.labels.get("chip_name", "")
        for one in facts if one.name == "node_hwmon_chip_names"
    }  # fmt: skip
    inputs = {
        (_host(one), one.labels.get("chip", ""), one.labels.get("sensor", "")): one.labels.get("label", "")
        for one in facts if one.name == "node_hwmon_sensor_label"
    }  # fmt: skip
    chips = sorted({(_host(one), one.labels.get("chip", "")) for one in found}, key=lambda chip: natural(f"{chip}"))
    names = [drivers.get(chip) or chip[1] for chip in chips]
    devices = dict(zip(chips, numbered(names), strict=True))
    called_so = dict(zip(chips, names, strict=True))
    result = []
    for one in found:
        chip = (_host(one), one.labels.get("chip", ""))
        sensor = one.labels.get("sensor", "")
        label = inputs.get((*chip, sensor), "") or sensor
        same = [
            inputs.get((*chip, other.labels.get("sensor", "")), "") or other.labels.get("sensor", "")
            for other in found if other.name == one.name and (_host(other), other.labels.get("chip", "")) == chip
        ]  # fmt: skip
        metric = _HWMON[one.name]
        text, identity = f"{called_so[chip]} {label}", f"{chip[1]}/{label}"
        if called_so[chip] in _CPU_CHIPS and one.name == "node_hwmon_temp_celsius":
            order = [other for other in chips if called_so[other] == called_so[chip]].index(chip)
            result.append(_of_cpu(one, metric, label, same, order=order, text=text, identity=identity))
            continue
        twice = sum(slug(other) == slug(label) for other in same) > 1
        alone = len(same) == 1 and one.name != "node_hwmon_fan_rpm"
        part = "" if alone or label == "Composite" else f"{slug(label)}_{sensor}." if twice else f"{slug(label)}."
        result.append(_named(one, metric, device=devices[chip], identity=identity, part=part, label=text))
    return result


def _of_cpu(
    sample: Sample, metric: _Metric, label: str, same: Sequence[str], *, order: int, text: str, identity: str
) -> Named:
    number = re.fullmatch(r"package id (\d+)", label, re.IGNORECASE)
    cpu = f"cpu{number[1] if number else order}"
    lower = {other.casefold() for other in same}
    best = next((name for name in ("tdie", "tctl", "temp1") if name in lower), "")
    whole = bool(number) or label.casefold() == best
    named = _named(
        sample, metric, device=cpu, identity=identity, part="package." if whole else f"{slug(label)}.", label=text
    )
    return named if whole else replace(named, left_out=_PARTS_LEFT_OUT)


def _zones(found: Sequence[Sample], others: Sequence[Sample]) -> list[Named]:
    by_driver = any(one.name == "node_hwmon_chip_names" and one.labels.get("chip_name") in _CPU_CHIPS for one in others)
    result = []
    packages = 0
    for one, device in zip(found, numbered([one.labels.get("type", "zone") for one in found]), strict=True):
        kind = one.labels.get("type", "zone")
        named = _named(
            one, _ZONES[one.name], device=device, label=f"thermal zone {kind}",
            identity=f"{kind}/{one.labels.get('zone', '')}",
        )  # fmt: skip
        if kind == "x86_pkg_temp" and by_driver:
            named = replace(named, left_out=say("left out: the same sensor as the driver's"))
        elif kind == "x86_pkg_temp":
            named = replace(named, device=f"cpu{packages}", quantity=f"package.{named.quantity}")
            packages += 1
        result.append(named)
    return result


def _rapl(sample: Sample) -> Named | None:
    part = sample.name.removeprefix("node_rapl_").removesuffix("_joules_total")
    index = re.sub(r"\D", "", sample.labels.get("index", ""))
    if not index and part != "psys":
        return None
    device, word = ("platform", "") if part == "psys" else (f"cpu{index}", f"{part}.")
    identity = sample.labels.get("path", "").rpartition("/")[2] or f"{part} {index}"
    return _named(
        sample, _RAPL[sample.name], device=device, identity=f"powercap/{identity}", part=word, label=sample.name
    )


def _ipmi(found: Sequence[Sample]) -> list[Named]:
    """By the sensor's own name, as the BMC's source calls it; of two of one name each by its number too."""
    result = []
    for one in found:
        name, number = " ".join(one.labels.get("name", "").split()), one.labels.get("id", "")
        metric = _IPMI[one.name]
        kind = measures(name, _IPMI_UNITS[metric.unit])
        twin = any(
            called(" ".join(other.labels.get("name", "").split())) == called(name) and other.name == one.name
            for other in found if other is not one
        )  # fmt: skip
        named = _named(
            one, metric, device=called(f"{name} {number}", whole=True) if twin else called(name),
            identity=f"{name} {number}".strip(), label=name,
        )  # fmt: skip
        if kind in _IPMI_QUANTITIES:
            quantity, unit = _IPMI_QUANTITIES[kind]
            named = replace(named, quantity=quantity, unit=unit)
        result.append(replace(named, left_out=left_out(name, kind)))
    return result


def _host(sample: Sample) -> str:
    return sample.labels.get("instance", "")
