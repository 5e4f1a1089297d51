"""The sources of the bench in use: those that come with us, then those of third parties."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.model.said import say
from pytest_thermal.plugin import options
from pytest_thermal.plugin.active_bench import ActiveBench, active_bench

if TYPE_CHECKING:
    from pytest_thermal.sensors import SourceSpec


def bench_sources(config: pytest.Config, *, simulated: bool | None = None) -> list[SourceSpec]:
    """What the bench's sensors come from. On the demo bench that is the simulated machine alone.

    Args:
        config: The run's.
        simulated: False asks for this machine's own sources also on the demo bench; default: as the bench is.
    """
    active = active_bench(config)
    if active.bench.demo and simulated is not False:
        return [_demo_source(active), *_third_parties(config, active)]
    from pytest_thermal.sensors.specs import bench_specs

    sysfs = options.value(config, "sysfs") or "/sys"
    if not Path(sysfs).is_dir():
        raise pytest.UsageError(
            say("--sysfs {sysfs}: there is no such folder\ntry: where the host's /sys is mounted", sysfs=sysfs)
        )
    return [*bench_specs(active.bench.monitor, sysfs=sysfs), *_third_parties(config, active)]


def _third_parties(config: pytest.Config, active: ActiveBench) -> list[SourceSpec]:
    found: list[SourceSpec] = []
    for more in config.hook.pytest_thermal_sources(config=config, bench=active.bench):
        found += more or ()
    return found


def _demo_source(active: ActiveBench) -> SourceSpec:
    from pytest_thermal.demo.thermal_source import spec
    from pytest_thermal.experiment.plan import DEMO_TIME_SCALE

    if active.demo_machine is None:
        raise pytest.UsageError(say("the demo bench has no simulated machine"))
    return spec(
        active.demo_machine,
        time_scale=DEMO_TIME_SCALE,
        fault=active.thermal_fault,
        cores=active.bench.stress.cpu_workers,
    )
