"""The pytest side: hooks, options, markers and fixtures. Only this room knows pytest, and nothing imports it.

Nothing heavy is imported here: every pytest run on a machine where the plugin is installed pays for this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_thermal.plugin.access_checks.fixtures import access, api, async_api, domain
from pytest_thermal.plugin.fixtures_bench import bench
from pytest_thermal.plugin.fleet_checks.fixtures import fleet
from pytest_thermal.plugin.hooks import (
    pytest_addhooks,
    pytest_addoption,
    pytest_cmdline_main,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_report_collectionfinish,
    pytest_report_header,
    pytest_runtest_makereport,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from pytest_thermal.plugin.parametrisation import pytest_generate_tests
from pytest_thermal.plugin.thermal_checks.fixtures import (
    device,
    limits,
    load,
    phase,
    recorder,
    runs,
    sensor,
    sensors,
    thermal,
    thermal_run,
)

if TYPE_CHECKING:
    from pytest_thermal.plugin.access_checks.session import Access
    from pytest_thermal.plugin.fleet_checks.fixtures import JudgedFleet as Fleet
    from pytest_thermal.plugin.thermal_checks.judged_run import JudgedRun as Thermal

__all__ = [
    "Access",
    "Fleet",
    "Thermal",
    "access",
    "api",
    "async_api",
    "bench",
    "device",
    "domain",
    "fleet",
    "limits",
    "load",
    "phase",
    "pytest_addhooks",
    "pytest_addoption",
    "pytest_cmdline_main",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_report_collectionfinish",
    "pytest_report_header",
    "pytest_runtest_makereport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "recorder",
    "runs",
    "sensor",
    "sensors",
    "thermal",
    "thermal_run",
]


def __getattr__(name: str) -> Any:
    """`Access`, `Fleet` and `Thermal`, the types of the fixtures, when a suite asks for them."""
    if name == "Access":
        from pytest_thermal.plugin.access_checks.session import Access

        return Access
    if name == "Fleet":
        from pytest_thermal.plugin.fleet_checks.fixtures import JudgedFleet

        return JudgedFleet
    if name == "Thermal":
        from pytest_thermal.plugin.thermal_checks.judged_run import JudgedRun

        return JudgedRun
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
