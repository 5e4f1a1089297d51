"""Typed places for what the plugin keeps on pytest's own objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_thermal.model import Finding
    from pytest_thermal.model.catalogue import Catalogue
    from pytest_thermal.model.readings import Sensor
    from pytest_thermal.plugin.access_checks.session import AccessSession, Ending
    from pytest_thermal.plugin.active_bench import ActiveBench
    from pytest_thermal.plugin.evidence.gate_run import GateRun
    from pytest_thermal.plugin.evidence.observing import Observer
    from pytest_thermal.plugin.evidence.ocp_diag_file import OcpDiagFile
    from pytest_thermal.plugin.fleet_checks.session import FleetEnding, FleetSession
    from pytest_thermal.plugin.thermal_checks.session import ThermalEnding, ThermalSession

CATALOGUE: pytest.StashKey[Catalogue] = pytest.StashKey()
"""The language that this run is told in, once anything was told."""

TAKEN_OPTIONS: pytest.StashKey[list[str]] = pytest.StashKey()
"""Short option names that another plugin owns."""

ACTIVE_BENCH: pytest.StashKey[ActiveBench] = pytest.StashKey()
"""The bench in use, once anything asked for it."""

BENCH_ERROR: pytest.StashKey[str] = pytest.StashKey()
"""Why no bench could be had, found during collection."""

ACCESS: pytest.StashKey[AccessSession] = pytest.StashKey()
"""The access run of this process."""

ENDINGS: pytest.StashKey[list[Ending]] = pytest.StashKey()
"""What each process of the run has to tell at its end."""

FINDINGS: pytest.StashKey[list[Finding]] = pytest.StashKey()
"""The findings that one test item asked for."""

THERMAL: pytest.StashKey[ThermalSession] = pytest.StashKey()
"""The thermal run of this process."""

FLEET: pytest.StashKey[FleetSession] = pytest.StashKey()
"""The fleet that this process judges."""

FLEET_ENDINGS: pytest.StashKey[list[FleetEnding]] = pytest.StashKey()
"""What each process that judged a fleet has to tell at its end."""

FLEET_NOT_ASKED: pytest.StashKey[bool] = pytest.StashKey()
"""On a test of the fleet's suite that nobody asked for: it blocks no gate."""

THERMAL_ENDINGS: pytest.StashKey[list[ThermalEnding]] = pytest.StashKey()
"""What each process that made or judged a thermal run has to tell at its end."""

TERMINAL: pytest.StashKey[int] = pytest.StashKey()
"""A descriptor of standard error that pytest's capture does not redirect; there only where a live view may be shown."""

OBSERVER: pytest.StashKey[Observer] = pytest.StashKey()
"""Every test as it ended; there only where something asks for it."""

GATE: pytest.StashKey[GateRun] = pytest.StashKey()
"""The gate of this run; there only with `--gate`, and not on xdist's workers."""

OCP_DIAG: pytest.StashKey[OcpDiagFile] = pytest.StashKey()
"""Where the findings go as OCP Test & Validation output; there only with `--ocp-diag`."""

SENSORS: pytest.StashKey[tuple[Sensor, ...]] = pytest.StashKey()
"""What the bench measures, once it was looked for."""
