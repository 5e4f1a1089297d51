"""Hooks for third parties.

Implement them with ``@pytest.hookimpl(optionalhook=True)``, so that a conftest still
loads where this plugin is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_thermal.bench import Bench
    from pytest_thermal.load import Work
    from pytest_thermal.model import Finding
    from pytest_thermal.plugin.thermal_checks.judged_run import ThermalRun
    from pytest_thermal.sensors import SourceSpec


def pytest_thermal_sources(config: pytest.Config, bench: Bench) -> Iterable[SourceSpec]:
    """Sources of sensors beside those that come with the plugin, each described so that another process can open it.

    A `pytest_thermal.sensors.SourceSpec` names a factory as ``package.module:callable``; what that returns has the
    methods of `pytest_thermal.sensors.Source`. Names must differ from those of other sources.
    """
    return ()


def pytest_thermal_metadata(config: pytest.Config, metadata: dict[str, Any]) -> None:
    """Add facts about the bench (rack, serial numbers, firmware …) to ``metadata``, which reports show.

    Values are text, numbers, booleans or None; keys of the bench are taken out of them.
    """


def pytest_thermal_loads(config: pytest.Config, bench: Bench, limit_seconds: float) -> Iterable[Work]:
    """Loads beside those of the bench file, run from the ramp until the load is taken off.

    A `pytest_thermal.load.Work` is a command with its own time limit, which should be ``limit_seconds``; it is run
    under a guard that always stops it.
    """
    return ()


def pytest_thermal_criteria(config: pytest.Config, run: ThermalRun) -> Iterable[Finding]:
    """Findings of one's own on a thermal run that has ended; they stand beside ours in ``summary.json`` and the table.

    A `pytest_thermal.model.Finding` whose ``check`` is a new word. A test of one's own is the way to let one fail.
    """
    return ()
