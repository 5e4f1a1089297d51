"""The pytest side: hooks, options, markers and fixtures. Only this room knows pytest, and nothing imports it.

Nothing heavy is imported here: every pytest run on a machine where the plugin is installed pays for this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_thermal.plugin.fixtures_access import access, api, async_api, domain, pytest_generate_tests
from pytest_thermal.plugin.fixtures_bench import bench
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

if TYPE_CHECKING:
    from pytest_thermal.plugin.session import Access

__all__ = [
    "Access",
    "access",
    "api",
    "async_api",
    "bench",
    "domain",
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
]


def __getattr__(name: str) -> Any:
    """`Access`, the type of the fixture, when a suite asks for it."""
    if name == "Access":
        from pytest_thermal.plugin.session import Access

        return Access
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
