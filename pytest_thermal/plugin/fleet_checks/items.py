"""Tests of a fleet: once a node, a temperature, a kind of place; skipped where nobody asked; concluded."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal.model.said import say
from pytest_thermal.plugin.fleet_checks.asked import NOT_ASKED, is_fleet_asked
from pytest_thermal.plugin.keys import BENCH_ERROR, FLEET, FLEET_NOT_ASKED
from pytest_thermal.plugin.language import catalogue

if TYPE_CHECKING:
    from pytest_thermal.plugin.fleet_checks.session import FleetEnding

CHECK_OF = {"node": "node", "temperature": "consistency", "place": "place"}
"""Parameter of a test → the check whose subjects it goes through."""
NOTHING = "none"
NO_PLACES = "no fleet.toml says where nodes sit; a warm branch or rack is then told as its nodes, or as their cards"


def is_of_fleet(node: Any) -> bool:
    """Whether a test, or the definition of one, is about a fleet: by its fixture and its marker."""
    return "fleet" in getattr(node, "fixturenames", ()) and node.get_closest_marker("fleet") is not None


def parametrise(metafunc: pytest.Metafunc) -> None:
    """Once for each subject."""
    name = next((name for name in CHECK_OF if name in metafunc.fixturenames), None)
    if name is None or metafunc.definition.get_closest_marker("fleet") is None:
        return
    config = metafunc.config
    if not is_fleet_asked(config, metafunc.definition.path):
        _placeholder(metafunc, name, "not-asked", NOT_ASKED)
        return
    from pytest_thermal.plugin.fleet_checks.session import fleet_session

    subjects: Sequence[str]
    try:
        subjects = fleet_session(config).judgement.subjects(CHECK_OF[name])
    except pytest.UsageError as error:
        config.stash.setdefault(BENCH_ERROR, error.args[0])
        subjects = ["no-fleet"]
    if subjects:
        metafunc.parametrize(name, list(subjects), ids=[subject.replace(" ", "-") for subject in subjects])
    elif name == "place":
        _placeholder(metafunc, name, NOTHING, NO_PLACES)
    else:
        metafunc.parametrize(name, [NOTHING], ids=[NOTHING])  # it runs, and does not pass


def _placeholder(metafunc: pytest.Metafunc, name: str, shown: str, reason: str) -> None:
    parameter: Any = pytest.param(shown, id=shown, marks=pytest.mark.skip(reason=reason))
    metafunc.parametrize(name, [parameter])


def prepare(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what nobody asked for; such a test blocks no gate. No place to judge is nothing to block one by either."""
    for item in items:
        if not is_of_fleet(item):
            continue
        if not is_fleet_asked(config, item.path):
            item.stash[FLEET_NOT_ASKED] = True
            item.add_marker(pytest.mark.skip(reason=NOT_ASKED))
        elif getattr(getattr(item, "callspec", None), "params", {}).get("place") == NOTHING:
            item.stash[FLEET_NOT_ASKED] = True


def conclude(session: pytest.Session, node: str) -> dict[str, FleetEnding]:
    """Write the page and gather what is to be told. Never raises: the tests' outcomes stand already."""
    fleet = session.config.stash[FLEET]
    try:
        if fleet.noted and session.exitstatus != pytest.ExitCode.INTERRUPTED:
            fleet.write_page()
        ending = fleet.ending(node)
    except Exception as error:  # noqa: BLE001 - see above
        text = say("fleet: it could not be summed up: {kind}: {error}", kind=type(error).__name__, error=error)
        warnings.warn(pytest.PytestWarning(catalogue(session.config)(text)), stacklevel=1)
        return {}
    return {} if ending is None else {"thermal_fleet": ending}
