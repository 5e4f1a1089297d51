"""Which tests there are: access checks once a domain, thermal checks once a phase, sensor or device of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal.plugin.active_bench import active_bench, listed_domains
from pytest_thermal.plugin.keys import BENCH_ERROR
from pytest_thermal.plugin.thermal_checks.asked import NOT_ASKED, is_asked

if TYPE_CHECKING:
    from pytest_thermal.plugin.thermal_checks.session import ThermalSession

THERMAL_FIXTURES = frozenset({"thermal", "thermal_run"})
SUBJECTS = ("phase", "sensor", "device")
NOTHING = "none"
"""Id of a test that has nothing to be about."""
ESSENTIAL = frozenset({"baseline", "threshold", "rise", "settled"})
"""A thermal run in which these have no temperature to judge has measured nothing: that is no skip."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise what uses our parameters."""
    if "domain" in metafunc.fixturenames:
        _once_a_domain(metafunc)
    if "fleet" in metafunc.fixturenames:
        from pytest_thermal.plugin.fleet_checks.items import parametrise

        parametrise(metafunc)
    if THERMAL_FIXTURES & set(metafunc.fixturenames):
        for name in SUBJECTS:
            if name in metafunc.fixturenames:
                _once_a_subject(metafunc, name)


def _once_a_domain(metafunc: pytest.Metafunc) -> None:
    try:
        names = list(listed_domains(metafunc.config) or ())
        names = names or [domain.name for domain in active_bench(metafunc.config).bench.domains]
    except pytest.UsageError as error:
        metafunc.config.stash.setdefault(BENCH_ERROR, error.args[0])
        names = ["no-bench"]
    metafunc.parametrize("domain", names, ids=names, indirect=True, scope="session")


def _once_a_subject(metafunc: pytest.Metafunc, name: str) -> None:
    config = metafunc.config
    check = metafunc.function.__name__.removeprefix("test_")
    if not is_asked(config, metafunc.definition.path):
        _placeholder(metafunc, name, "not-asked", NOT_ASKED)
        return
    from pytest_thermal.plugin.thermal_checks.session import thermal_session

    try:
        session = thermal_session(config)
        session.limits()  # a limit that cannot be had is told before anything runs
        subjects = session.phases if name == "phase" else _subjects(session, check)
    except pytest.UsageError as error:
        config.stash.setdefault(BENCH_ERROR, error.args[0])
        subjects = ["no-bench"]
    if not subjects and check in ESSENTIAL:
        subjects = [NOTHING]  # it runs, and does not pass
    if subjects:
        metafunc.parametrize(name, list(subjects), ids=list(subjects), indirect=True)
    else:
        _placeholder(
            metafunc, name, NOTHING, f"nothing on this bench that {check} could be judged of: pytest --sensors"
        )


def _subjects(session: ThermalSession, check: str) -> Sequence[str]:
    from pytest_thermal.findings import CHECKS, subjects

    known = check if check in CHECKS else "rise"  # a test of a user's own: the temperatures that follow the load
    return subjects(known, session.sensors, inference=session.inference)


def _placeholder(metafunc: pytest.Metafunc, name: str, shown: str, reason: str) -> None:
    parameter: Any = pytest.param(shown, id=shown, marks=pytest.mark.skip(reason=reason))
    metafunc.parametrize(name, [parameter], indirect=True)
