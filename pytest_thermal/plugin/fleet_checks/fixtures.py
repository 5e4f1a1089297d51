"""The fixture of the fleet's suite, and how a test ends by one of its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal.plugin.evidence.properties import add_properties
from pytest_thermal.plugin.keys import FINDINGS

if TYPE_CHECKING:
    from pytest_thermal.findings.fleet.judgement import FleetJudgement
    from pytest_thermal.model import Finding
    from pytest_thermal.plugin.fleet_checks.session import FleetSession


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> JudgedFleet:
    """The fleet's checks: `fleet.require("node", host)` ends the test as that check ended."""
    from pytest_thermal.plugin.fleet_checks.session import fleet_session

    return JudgedFleet(fleet_session(request.config), request.node)


class JudgedFleet:
    """A fleet as one test asks it: its findings end the test."""

    def __init__(self, session: FleetSession, item: pytest.Item) -> None:
        self._session = session
        self._item = item

    @property
    def judgement(self) -> FleetJudgement:
        """Everything that is known of the fleet, for tests of one's own."""
        return self._session.judgement

    def require(self, check: str, subject: str) -> Finding:
        """A check that must hold: ``node``, ``consistency``, ``place``, ``simultaneous``.

        Raises:
            FindingFailed: it failed.
            Inconclusive: it could not be measured.
            pytest.skip.Exception: it does not apply.
        """
        __tracebackhide__ = True
        from pytest_thermal.model.said import say
        from pytest_thermal.plugin.language import catalogue
        from pytest_thermal.plugin.outcomes import FindingWarning, conclude

        found = self._session.judgement.finding(check, subject)
        self._item.stash.setdefault(FINDINGS, []).append(found)
        self._session.noted.append(found)
        simulated = bool(found.evidence.get("simulated", False))
        add_properties(self._item, found, simulated=simulated, node=node_told(found))
        for text in found.warnings:
            told = catalogue(self._item.config)(
                say("{check}[{subject}]: {text}", check=check, subject=subject, text=text)
            )
            self._item.warn(FindingWarning(told))
        conclude(found, advisory=self._item.get_closest_marker("advisory") is not None)
        return found


def node_told(found: Finding) -> str:
    """The node, or nodes, that a finding of a fleet is about; ``fleet`` where it is about all."""
    told: Any = found.evidence.get("node")
    return str(told) if told else found.subject if found.check == "node" else "fleet"
