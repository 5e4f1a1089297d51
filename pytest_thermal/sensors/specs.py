"""Which sources a bench has, in the order in which they are believed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pytest_thermal.bench import Monitor
from pytest_thermal.bench.files import IPMI_PASSWORD, PROMETHEUS_PASSWORD, PROMETHEUS_TOKEN, REDFISH_PASSWORD
from pytest_thermal.sensors.redfish import source as redfish
from pytest_thermal.sensors.source import SourceSpec
from pytest_thermal.sensors.tools import ipmi, known
from pytest_thermal.sensors.tools.tool import Tool

_HERE = "pytest_thermal.sensors"


def builtin_specs(*, sysfs: str = "/sys", proc: str = "/proc") -> tuple[SourceSpec, ...]:
    """Every source that comes with us, for the host whose /sys and /proc are seen there."""
    return bench_specs(Monitor(), sysfs=sysfs, proc=proc)


def bench_specs(monitor: Monitor, *, sysfs: str = "/sys", proc: str = "/proc") -> tuple[SourceSpec, ...]:
    """Every source for a bench: its own command and path come last, since what drivers tell by name is surer."""
    cards = ",".join(str(index) for index in monitor.gpu_indices or ())
    zones = ",".join(str(zone) for zone in monitor.cpu_zones or ())
    both = {"sysfs": sysfs, "proc": proc}
    specs = [
        SourceSpec(name="cpu_temperature", factory=f"{_HERE}.sysfs.cpu_temperature:make", options=both),
        SourceSpec(name="cpu_load", factory=f"{_HERE}.sysfs.cpu_load:make", options=both, least_period_seconds=0.5),
        SourceSpec(name="rapl", factory=f"{_HERE}.sysfs.rapl:make", options={"sysfs": sysfs}, least_period_seconds=0.5),
        SourceSpec(
            name="nvml",
            factory=f"{_HERE}.nvml:make",
            options={"only": cards},
            maker="nvidia",
            least_period_seconds=0.5,
        ),
        *(_of_tool(tool, cards) for tool in known.TOOLS if tool is not ipmi.TOOL),
        SourceSpec(
            name="thermal_zones",
            factory=f"{_HERE}.sysfs.thermal_zones:make",
            options={**both, "only": zones},
            least_period_seconds=0.5,
        ),
        SourceSpec(name="hwmon", factory=f"{_HERE}.sysfs.hwmon:make", options=both, least_period_seconds=0.5),
    ]
    specs.append(_of_bmc(monitor))
    roles = _roles(monitor, redfish.NAME)
    if monitor.redfish_host or roles:
        specs.append(_of_redfish(monitor, roles))
    if monitor.prometheus_url:
        specs.append(_of_prometheus(monitor, monitor.prometheus_url))
    if monitor.cpu_temp_path:
        specs.append(
            SourceSpec(
                name="cpu_temp_path",
                factory=f"{_HERE}.sysfs.user_file:make",
                options={"path": monitor.cpu_temp_path},
                least_period_seconds=0.5,
            )
        )
    if monitor.gpu_temp_cmd:
        specs.append(
            SourceSpec(
                name="gpu_temp_cmd",
                factory=f"{_HERE}.tools.known:make_command",
                options={"command": monitor.gpu_temp_cmd, "only": cards},
                least_period_seconds=1.0,
            )
        )
    return tuple(specs)


def _of_bmc(monitor: Monitor) -> SourceSpec:
    roles = _roles(monitor, ipmi.TOOL.name)
    return SourceSpec(
        name=ipmi.TOOL.name,
        factory=f"{_HERE}.tools.known:make_bmc",
        # As of every maker's tool, it is no news that it is not installed; unless the bench counts on it.
        options={
            "tool": ipmi.TOOL.name,
            "roles": json.dumps(roles),
            "host": monitor.ipmi_host,
            "user": monitor.ipmi_user,
            "cipher_suite": monitor.ipmi_cipher_suite,
        },
        secrets=(IPMI_PASSWORD,) if monitor.ipmi_host else (),
        needed=roles,
        least_period_seconds=ipmi.TOOL.least_period_seconds,
    )


def _of_prometheus(monitor: Monitor, url: str) -> SourceSpec:
    named = _roles(monitor, "prometheus")
    return SourceSpec(
        name="prometheus",
        factory=f"{_HERE}.prometheus.source:make",
        options={
            "url": url,
            "user": monitor.prometheus_user,
            "labels": json.dumps(monitor.prometheus_labels),
            "named": json.dumps(named),
        },
        secrets=(PROMETHEUS_PASSWORD, PROMETHEUS_TOKEN),
        needed={sensor.partition(".")[0]: text for sensor, text in named.items()},
        # Most targets are scraped every 15 s or more rarely: what is asked more often is answered from memory.
        least_period_seconds=10.0,
    )


def _of_redfish(monitor: Monitor, roles: Mapping[str, str]) -> SourceSpec:
    return SourceSpec(
        name=redfish.NAME,
        factory=f"{_HERE}.redfish.source:make",
        options={
            "host": monitor.redfish_host,
            "user": monitor.redfish_user,
            "ca": monitor.redfish_ca,
            "roles": json.dumps(roles),
        },
        from_outside=True,
        secrets=(REDFISH_PASSWORD,),
        needed=roles,
        least_period_seconds=redfish.PERIOD_SECONDS,
    )


def _roles(monitor: Monitor, source: str) -> dict[str, str]:
    """What the bench calls sensors of that source."""
    prefix = f"{source}:"
    return {device: name.removeprefix(prefix) for device, name in monitor.sensors.items() if name.startswith(prefix)}


def _of_tool(tool: Tool, cards: str) -> SourceSpec:
    return SourceSpec(
        name=tool.name,
        factory=f"{_HERE}.tools.known:make",
        options={"tool": tool.name, "only": cards},
        maker=tool.maker,
        fallback_for=tool.fallback_for,
        least_period_seconds=tool.least_period_seconds,
    )
