"""Thermal tests among the collected ones: marked, and given the time that their plan takes."""

from __future__ import annotations

import pytest

from pytest_thermal.plugin import options
from pytest_thermal.plugin.keys import BENCH_ERROR
from pytest_thermal.plugin.thermal_asked import NOT_ASKED, is_asked


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
        from pytest_thermal.plugin.live_session import LiveSession
        from pytest_thermal.plugin.thermal_session import thermal_session

        session = thermal_session(config)
        if isinstance(session, LiveSession):
            for item in asked:
                if item.get_closest_marker("timeout") is None:
                    item.add_marker(pytest.mark.timeout(session.plan.timeout_seconds))
