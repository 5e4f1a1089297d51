"""Findings in Allure: plain titles, a tree by layer and phase, message and figures on the page, the bench beside it."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import allure
import allure_commons
import pytest
from allure_commons.model2 import Label, Parameter

from pytest_thermal.plugin.allure.environment import metadata, write_environment
from pytest_thermal.plugin.allure.fleet import illustrate_fleet
from pytest_thermal.plugin.allure.pictures import Noted, illustrate, is_pictured
from pytest_thermal.plugin.evidence.node import bench_of, node_of
from pytest_thermal.plugin.keys import ACTIVE_BENCH, FINDINGS
from pytest_thermal.plugin.language import catalogue

if TYPE_CHECKING:
    from pytest_thermal.model import Finding

_OWN_EXCEPTION = re.compile(r"^(?:[\w.]+\.)?(?:FindingFailed|Inconclusive): ")
_NOTHING_TO_TELL = ("passed", None)
"""None: a finaliser of pytest's own."""
LAST_OWN_STATUS = 128
"""What is above it tells of a signal."""
WHOLE_RUN, EARLIER = "whole run", "against an earlier run"
PHASE_OF = {
    "coverage": WHOLE_RUN,
    "baseline": "baseline",
    "pump": WHOLE_RUN,
    "leak": WHOLE_RUN,
    "rebound": "cooldown",
    "drift": EARLIER,
}
"""The part of a thermal run that a check looks at; that of any other is steady."""


class AllureBridge:
    """Listens to reports of the process it runs in; the controller also writes the environment."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._shaper = ResultShaper(config)
        self._links: list[tuple[str, str]] | None = None
        allure_commons.plugin_manager.register(self._shaper, "thermal-results")
        config.add_cleanup(lambda: allure_commons.plugin_manager.unregister(plugin=self._shaper) and None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Describe the test by the findings it asked for, while Allure still holds its result open."""
        findings = item.stash.get(FINDINGS, None)
        if call.when == "call" and findings:
            self._describe(item, findings)
        elif call.excinfo is not None and not findings and ("thermal_simulated", True) in item.user_properties:
            allure.dynamic.epic("Thermal (simulated)")  # a test that ended before it had a finding
            allure.dynamic.tag("simulated")
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Draw what this process has measured; write the environment beside the results, once, from the controller."""
        config = session.config
        given = config.getoption("allure_report_dir", None)
        if not given:
            return
        folder = Path(given)
        # After an interrupt or a signal there is no time.
        if session.exitstatus != pytest.ExitCode.INTERRUPTED and session.exitstatus <= LAST_OWN_STATUS:
            illustrate(config, folder, [one for one in self._shaper.noted if not one.node])
            illustrate_fleet(config, folder, [one for one in self._shaper.noted if one.node])
        if not hasattr(config, "workerinput"):
            write_environment(config, folder)

    def _describe(self, item: pytest.Item, findings: list[Finding]) -> None:
        from pytest_thermal.reporting.allure_descriptions import PENDING, finding_text

        if item.get_closest_marker("fleet") is not None:
            self._describe_fleet(item, findings)
            return
        active = self._config.stash[ACTIVE_BENCH]
        first = findings[0]
        thermal = item.get_closest_marker("thermal") is not None
        # A run that is replayed may be of the demo bench though this bench is real, and the other way round.
        simulated = bool(first.evidence.get("simulated", False)) if thermal else active.bench.demo
        told = catalogue(self._config)
        title = told.template(_first_line(item))
        if title:
            allure.dynamic.title(f"{title} [{first.subject}]" if thermal or len(active.bench.domains) > 1 else title)
        allure.dynamic.epic(("Thermal" if thermal else "Access") + (" (simulated)" if simulated else ""))
        feature, story = _place(first, thermal=thermal)
        allure.dynamic.feature(feature)
        allure.dynamic.story(story)
        if item.get_closest_marker("critical") is not None:
            allure.dynamic.severity(allure.severity_level.CRITICAL)
        elif item.get_closest_marker("advisory") is not None:
            allure.dynamic.severity(allure.severity_level.MINOR)
        if simulated:
            allure.dynamic.tag("simulated")
        for name, url in self._of_the_bench():
            allure.dynamic.link(url, name=name)
        texts = []
        for finding in findings:
            texts.append(finding_text(finding, simulated=simulated, told=told))
            if thermal and is_pictured(finding):
                texts.append(told(PENDING))
        allure.dynamic.description("\n\n".join(texts))
        if thermal:
            self._shaper.current = Noted(result_id="", findings=tuple(findings), simulated=simulated)
        for finding in findings:
            if finding.transcript:
                allure.attach(
                    finding.transcript,
                    name=f"{finding.check}: exchange",
                    attachment_type=allure.attachment_type.TEXT,
                )

    def _describe_fleet(self, item: pytest.Item, findings: list[Finding]) -> None:
        from pytest_thermal.plugin.allure.fleet import bench_told, is_pictured, place_in_tree
        from pytest_thermal.plugin.fleet_checks.fixtures import node_told
        from pytest_thermal.reporting.allure_descriptions import PENDING, finding_text

        first = findings[0]
        simulated = bool(first.evidence.get("simulated", False))
        title = _first_line(item)
        if title:
            allure.dynamic.title(f"{title} [{first.subject}]")
        allure.dynamic.epic("Fleet (simulated)" if simulated else "Fleet")
        feature, story = place_in_tree(first)
        allure.dynamic.feature(feature)
        allure.dynamic.story(story)
        critical = item.get_closest_marker("critical") is not None
        allure.dynamic.severity(allure.severity_level.CRITICAL if critical else allure.severity_level.MINOR)
        if simulated:
            allure.dynamic.tag("simulated")
        texts = []
        for finding in findings:
            texts.append(finding_text(finding, simulated=simulated))
            texts += [PENDING] if is_pictured(finding) else []
        allure.dynamic.description("\n\n".join(texts))
        self._shaper.current = Noted(
            result_id="",
            findings=tuple(findings),
            simulated=simulated,
            node=node_told(first),
            bench=bench_told(self._config, first),
        )

    def _of_the_bench(self) -> list[tuple[str, str]]:
        """Addresses among the facts that a conftest or plugin adds: a ticket, the rack's page."""
        if self._links is None:
            told = {name: str(value) for name, value in metadata(self._config).items()}
            self._links = [(name, url) for name, url in told.items() if url.startswith(("http://", "https://"))]
        return self._links


class ResultShaper:
    """Gives each result of a run that uses a bench its last form, just before it is written."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.current: Noted | None = None
        """What the test that is running now is about, once that is known."""
        self.noted: list[Noted] = []
        """What was written."""

    @allure_commons.hookimpl(tryfirst=True)
    def report_result(self, result: Any) -> None:
        """Node and bench, so that merged results stay apart; a message that begins with the layer.

        Allure puts the exception's class before a message.
        """
        details = result.statusDetails
        if details is not None and details.message:
            details.message = _OWN_EXCEPTION.sub("", details.message)
        own = self.current if self.current is not None and self.current.node else None
        bench = own.bench if own is not None else bench_of(self._config)
        if bench:
            node = own.node if own is not None else node_of(self._config)
            for parameter in result.parameters:
                parameter.value = _unquoted(parameter.value)
            result.parameters += [Parameter(name="node", value=node), Parameter(name="bench", value=bench)]
            result.labels += [Label(name="node", value=one) for one in node.split(", ")]
        if self.current is not None:
            noted, self.current = self.current, None
            self.noted.append(replace(noted, result_id=result.uuid))

    @allure_commons.hookimpl(tryfirst=True)
    def report_container(self, container: Any) -> None:
        """Leave out fixtures of which there is nothing to tell but that they passed."""
        if self._config.stash.get(ACTIVE_BENCH, None) is None:
            return
        for fixtures in (container.befores, container.afters):
            fixtures[:] = [
                one for one in fixtures if one.steps or one.attachments or one.status not in _NOTHING_TO_TELL
            ]


def _place(finding: Finding, *, thermal: bool) -> tuple[str, str]:
    """Feature and story: of an access check its layer and the domain, of a thermal one its phase and the check."""
    if not thermal:
        own = finding.layer if finding.layer == finding.check else finding.check.split("_", 1)[0]
        return own, finding.subject
    if finding.check == "phase":
        return finding.subject, "phase"
    return PHASE_OF.get(finding.check, "steady"), finding.check


def _unquoted(value: Any) -> Any:
    """``gpu0`` for the ``'gpu0'`` that allure-pytest makes of a text."""
    quoted = isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == "'"
    return value[1:-1] if quoted else value


def _first_line(item: pytest.Item) -> str:
    doc = getattr(getattr(item, "obj", None), "__doc__", None) or ""
    return doc.strip().splitlines()[0].rstrip(".") if doc.strip() else ""
