"""Thermal tests among the collected ones: marked, given the time that their plan takes, and concluded."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.model.said import say
from pytest_thermal.plugin import options
from pytest_thermal.plugin.keys import BENCH_ERROR, THERMAL
from pytest_thermal.plugin.language import catalogue
from pytest_thermal.plugin.thermal_checks.asked import NOT_ASKED, is_asked

if TYPE_CHECKING:
    from pytest_thermal.plugin.thermal_checks.session import ThermalEnding


def prepare(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what uses the thermal run; skip it where nobody asked for it; set its timeout.

    Whichever test comes first goes through the phases, so each gets the time of the whole plan. A limit that stands
    on a test itself is left alone; one for the whole session (``--timeout``) is meant for ordinary tests.
    """
    ours = [item for item in items if "thermal_run" in getattr(item, "fixturenames", ())]
    asked = [item for item in ours if is_asked(config, item.path)]
    for item in ours:
        if item.get_closest_marker("thermal") is None:
            item.add_marker("thermal")
        if item not in asked:
            item.add_marker(pytest.mark.skip(reason=NOT_ASKED))
    if not asked or config.stash.get(BENCH_ERROR, None) is not None or config.option.collectonly:
        return
    if config.pluginmanager.hasplugin("timeout") and options.value(config, "replay") is None:
        from pytest_thermal.plugin.thermal_checks.live_session import LiveSession
        from pytest_thermal.plugin.thermal_checks.session import thermal_session

        session = thermal_session(config)
        if isinstance(session, LiveSession):
            for item in asked:
                if item.get_closest_marker("timeout") is None:
                    item.add_marker(pytest.mark.timeout(session.plan.timeout_seconds))


def conclude(session: pytest.Session, node: str, *, interrupted: bool) -> dict[str, ThermalEnding]:
    """End the thermal run with the session; what third parties found bad fails it. Never raises.

    Whatever goes wrong here must not take along what the access checks, the reports and pytest itself have to tell.
    """
    run = session.config.stash[THERMAL]
    try:
        run.conclude(interrupted=interrupted)
        ending = run.ending(node)
    except Exception as error:  # noqa: BLE001 - see above
        run.close()
        text = say("thermal: the run could not be concluded: {name}: {error}", name=type(error).__name__, error=error)
        warnings.warn(pytest.PytestWarning(catalogue(session.config)(text)), stacklevel=1)
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        return {}
    if run.bad_by_third_parties and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return {} if ending is None else {"thermal_run": ending}
