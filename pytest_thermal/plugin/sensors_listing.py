"""`pytest --sensors`: what this bench can measure, told without running a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_thermal.plugin import options
from pytest_thermal.plugin.active_bench import active_bench

if TYPE_CHECKING:
    from pytest_thermal.sensors import SourceSpec


def list_sensors(config: pytest.Config) -> str:
    """The list in the form that was asked for.

    Raises:
        pytest.UsageError: there is no bench, or two sources have one name.
    """
    from pytest_thermal.sensors import SpecError, discover
    from pytest_thermal.sensors.listing import as_json, table

    try:
        found = discover(sources(config))
    except SpecError as error:
        raise pytest.UsageError(str(error)) from None
    if options.value(config, "sensors") == "json":
        return as_json(found)
    active = active_bench(config)
    # The demo bench simulates a gateway; what is listed is real.
    head = [f"thermal: sensors of this machine ({active.chosen_by})"] if active.bench.demo else active.header()
    return "\n".join([*head, "", table(found)])


def sources(config: pytest.Config) -> list[SourceSpec]:
    """The sources of the bench: those that come with us, then those of third parties."""
    from pytest_thermal.sensors.specs import bench_specs

    bench = active_bench(config).bench
    sysfs = options.value(config, "sysfs") or "/sys"
    found = list(bench_specs(bench.monitor, sysfs=sysfs))
    for more in config.hook.pytest_thermal_sources(config=config, bench=bench):
        found += more or ()
    return found
