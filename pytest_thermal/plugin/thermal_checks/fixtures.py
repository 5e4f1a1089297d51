"""Fixtures about heat: sensors, recordings and loads for tests of one's own, and the run of four phases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.plugin.active_bench import active_bench

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_thermal.findings import Limits
    from pytest_thermal.plugin.thermal_checks.judged_run import JudgedRun, ThermalRun
    from pytest_thermal.plugin.thermal_checks.own_measurements import BenchSensors, LoadFactory, RecorderFactory
    from pytest_thermal.plugin.thermal_checks.run_archive import Runs


@pytest.fixture(scope="session")
def thermal_run(pytestconfig: pytest.Config) -> ThermalRun:
    """The thermal run: `thermal_run.rise(sensor)`, `.phase("steady")`, `.requests` bring about what they need."""
    from pytest_thermal.plugin.thermal_checks.session import run_of

    return run_of(pytestconfig)


@pytest.fixture
def thermal(request: pytest.FixtureRequest, thermal_run: ThermalRun) -> JudgedRun:
    """The thermal run's checks: `thermal.require("rise", sensor)` ends the test as that check ended."""
    from pytest_thermal.plugin.thermal_checks.judged_run import JudgedRun
    from pytest_thermal.plugin.thermal_checks.session import thermal_session

    session = thermal_session(request.config)
    if session.simulated:
        request.node.user_properties.append(("thermal_simulated", True))
    broken = session.broken()
    if broken:
        from pytest_thermal.model.said import first_part, say
        from pytest_thermal.plugin.outcomes import skip

        skip(say("blocked: {because}", because=first_part(broken, "\n")))
    return JudgedRun(thermal_run, request.node)


@pytest.fixture
def phase(request: pytest.FixtureRequest, thermal: JudgedRun) -> str:
    """A phase of the run, gone through; a test that uses it runs once for each."""
    name: str = request.param
    thermal.ensure(name)
    return name


@pytest.fixture
def sensor(request: pytest.FixtureRequest, thermal: JudgedRun) -> str:
    """A sensor that the test's check applies to; a test that uses it runs once for each."""
    return _prepared(request, thermal)


@pytest.fixture
def device(request: pytest.FixtureRequest, thermal: JudgedRun) -> str:
    """A device that the test's check applies to; a test that uses it runs once for each."""
    return _prepared(request, thermal)


def _prepared(request: pytest.FixtureRequest, thermal: JudgedRun) -> str:
    subject: str = request.param
    function = getattr(request.node, "function", None)
    thermal.prepare(getattr(function, "__name__", "").removeprefix("test_"))
    return subject


@pytest.fixture(scope="session")
def limits(pytestconfig: pytest.Config) -> Limits:
    """Each limit with its value, unit and origin."""
    from pytest_thermal.plugin.thermal_checks.session import thermal_session

    return thermal_session(pytestconfig).limits()


@pytest.fixture(scope="session")
def runs(pytestconfig: pytest.Config) -> Runs:
    """The archive: the runs below `--runs`."""
    from pytest_thermal.plugin.thermal_checks.run_archive import Runs
    from pytest_thermal.plugin.thermal_checks.session import archive

    return Runs(archive(pytestconfig))


@pytest.fixture(scope="session")
def sensors(pytestconfig: pytest.Config) -> Iterator[BenchSensors]:
    """What this bench can measure; `sensors.read()` gives one reading of each."""
    from pytest_thermal.plugin.thermal_checks.own_measurements import BenchSensors

    active_bench(pytestconfig).start()
    with BenchSensors(pytestconfig) as found:
        yield found


@pytest.fixture
def recorder(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[RecorderFactory]:
    """Records a stretch of time in a process of its own, as a context manager: `recorder(period_seconds=1)`."""
    from pytest_thermal.plugin.thermal_checks.own_measurements import RecorderFactory

    active_bench(pytestconfig).start()
    with RecorderFactory(pytestconfig, tmp_path) as factory:
        yield factory


@pytest.fixture
def load(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[LoadFactory]:
    """Loads for a test of one's own: `load.cpu()`, `load.inference()` … are stopped whatever happens."""
    from pytest_thermal.plugin.thermal_checks.own_measurements import LoadFactory

    active_bench(pytestconfig).start()
    with LoadFactory(pytestconfig, tmp_path) as factory:
        yield factory
