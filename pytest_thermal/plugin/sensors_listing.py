"""`pytest --sensors`: what this bench can measure, told without running a test."""

from __future__ import annotations

import pytest

from pytest_thermal.model.said import say
from pytest_thermal.plugin import options
from pytest_thermal.plugin.active_bench import active_bench, is_explicit
from pytest_thermal.plugin.language import catalogue
from pytest_thermal.plugin.sources import bench_sources


def list_sensors(config: pytest.Config) -> str:
    """The list in the form that was asked for.

    Raises:
        pytest.UsageError: there is no bench, or two sources have one name.
    """
    from pytest_thermal.sensors import SpecError, discover
    from pytest_thermal.sensors.listing import as_json, table

    active = active_bench(config)
    # Where nobody asked for the demo bench, a person wants to know what this machine has.
    simulated = active.bench.demo and is_explicit(config)
    active.start()
    try:
        found = discover(bench_sources(config, simulated=simulated))
    except SpecError as error:
        raise pytest.UsageError(*error.args) from None
    if options.value(config, "sensors") == "json":
        return as_json(found)
    own = active.bench.demo and not simulated
    head = (
        [say("thermal: sensors of this machine ({chosen_by})", chosen_by=active.chosen_by)] if own else active.header()
    )
    return "\n".join([*map(catalogue(config), head), "", table(found, catalogue(config))])
