"""Which sources a bench has, in the order in which they are believed."""

from __future__ import annotations

from pytest_thermal.bench import Monitor
from pytest_thermal.sensors.source import SourceSpec

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
        _tool("nvidia-smi", cards, 2.0, maker="nvidia", fallback_for="nvml"),
        _tool("npu-smi", cards, 5.0, maker="ascend"),
        _tool("npu-smi-details", cards, 30.0, maker="ascend"),
        _tool("cnmon", cards, 2.0, maker="cambricon"),
        _tool("amd-smi", cards, 2.0, maker="amd"),
        _tool("rocm-smi", cards, 2.0, maker="amd", fallback_for="amd-smi"),
        _tool("hy-smi", cards, 2.0, maker="hygon"),
        _tool("rocm-smi-dtk", cards, 2.0, maker="hygon", fallback_for="hy-smi"),
        _tool("mthreads-gmi", cards, 2.0, maker="mthreads"),
        _tool("ixsmi", cards, 2.0, maker="iluvatar"),
        _tool("mx-smi", cards, 2.0, maker="metax"),
        _tool("efsmi", cards, 2.0, maker="enflame"),
        _tool("xpu-smi", cards, 2.0, maker="kunlunxin"),
        _tool("xpu-smi-intel", cards, 2.0, maker="intel"),
        _tool("hl-smi", cards, 2.0, maker="gaudi"),
        _tool("brsmi", cards, 2.0, maker="biren"),
        SourceSpec(
            name="thermal_zones",
            factory=f"{_HERE}.sysfs.thermal_zones:make",
            options={**both, "only": zones},
            least_period_seconds=0.5,
        ),
        SourceSpec(name="hwmon", factory=f"{_HERE}.sysfs.hwmon:make", options=both, least_period_seconds=0.5),
    ]
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


def _tool(
    name: str, cards: str, least_period_seconds: float, *, maker: str, fallback_for: str = ""
) -> SourceSpec:
    return SourceSpec(
        name=name,
        factory=f"{_HERE}.tools.known:make",
        options={"tool": name, "only": cards},
        fallback_for=fallback_for,
        maker=maker,
        least_period_seconds=least_period_seconds,
    )
