"""Findings in Allure: plain titles, layers as features, message and exchange on the page, the bench as environment."""

from __future__ import annotations

import platform
import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import allure
import allure_commons
import pytest

from pytest_thermal import __version__
from pytest_thermal.plugin.active_bench import ActiveBench
from pytest_thermal.plugin.keys import ACTIVE_BENCH, ENDINGS, FINDINGS, THERMAL_ENDINGS

if TYPE_CHECKING:
    from pytest_thermal.model import Finding
    from pytest_thermal.plugin.thermal_session import ThermalEnding


class PlainMessages:
    """Lets a result's message begin with the layer: Allure puts the exception's class before it."""

    @allure_commons.hookimpl(tryfirst=True)
    def report_result(self, result: Any) -> None:
        """Cut the class name off our own exceptions' messages."""
        details = result.statusDetails
        if details is not None and details.message:
            details.message = _OWN_EXCEPTION.sub("", details.message)


_OWN_EXCEPTION = re.compile(r"^(?:[\w.]+\.)?(?:FindingFailed|Inconclusive): ")


class AllureBridge:
    """Listens to reports of the process it runs in; the controller also writes the environment."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        plain = PlainMessages()
        allure_commons.plugin_manager.register(plain, "thermal-messages")
        config.add_cleanup(lambda: allure_commons.plugin_manager.unregister(plugin=plain) and None)

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
        """Write the environment beside the results, once, from the controller."""
        config = session.config
        folder = config.getoption("allure_report_dir", None)
        if hasattr(config, "workerinput") or not folder:
            return
        active = config.stash.get(ACTIVE_BENCH, None)
        header = [line for ending in config.stash.get(ENDINGS, []) for line in ending.bench]
        if active is None and not header and not config.stash.get(THERMAL_ENDINGS, []):
            return
        thermal: list[ThermalEnding] = config.stash.get(THERMAL_ENDINGS, [])
        lines = environment(active, header) if not (thermal and not header) else machine()
        for ending in thermal:
            lines["Thermal run"] = "; ".join(
                line.removeprefix("thermal: ") for line in [*ending.head, *ending.lines][:6]
            )
            lines["Evidence"] = ending.evidence or lines.get("Evidence", "none: the run broke before it began")
        spent = [ending.spending for ending in config.stash.get(ENDINGS, []) if ending.spending]
        if spent:
            lines["Tokens"] = "; ".join(spent)
        metadata: dict[str, Any] = {}
        config.hook.pytest_thermal_metadata(config=config, metadata=metadata)
        lines |= {name: str(value) for name, value in metadata.items()}
        text = "".join(f"{_escape(name)}={_escape(value, key=False)}\n" for name, value in lines.items())
        if active is not None:
            text = active.redactor.text(text)
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        (target / "environment.properties").write_text(text, encoding="utf-8")

    def _describe(self, item: pytest.Item, findings: list[Finding]) -> None:
        active = self._config.stash[ACTIVE_BENCH]
        first = findings[0]
        thermal = item.get_closest_marker("thermal") is not None
        # A run that is replayed may be of the demo bench though this bench is real, and the other way round.
        simulated = bool(first.evidence.get("simulated", False)) if thermal else active.bench.demo
        title = _first_line(item)
        if title:
            allure.dynamic.title(f"{title} [{first.subject}]" if thermal or len(active.bench.domains) > 1 else title)
        allure.dynamic.epic(("Thermal" if thermal else "Access") + (" (simulated)" if simulated else ""))
        allure.dynamic.feature(first.layer if first.layer == first.check else first.check.split("_", 1)[0])
        allure.dynamic.story(first.subject)
        if item.get_closest_marker("critical") is not None:
            allure.dynamic.severity(allure.severity_level.CRITICAL)
        elif item.get_closest_marker("advisory") is not None:
            allure.dynamic.severity(allure.severity_level.MINOR)
        if simulated:
            allure.dynamic.tag("simulated")
        allure.dynamic.description("\n\n".join(describe(finding, simulated=simulated) for finding in findings))
        for finding in findings:
            if finding.transcript:
                allure.attach(
                    finding.transcript,
                    name=f"{finding.check}: exchange",
                    attachment_type=allure.attachment_type.TEXT,
                )


def describe(finding: Finding, *, simulated: bool) -> str:
    """A finding in Markdown: verdict, message, evidence."""
    lines = [f"**{finding.outcome}** — {_markdown(finding.message.splitlines()[0])}", ""]
    lines += [f"- {_markdown(line)}" for line in finding.message.splitlines()[1:]]
    lines += [f"- note: {_markdown(text)}" for text in finding.warnings]
    shown = {name: value for name, value in finding.evidence.items() if value is not None}
    if shown:
        lines += ["", "| measured | value |", "|---|---|"]
        lines += [f"| {name} | {_markdown(str(value))} |" for name, value in shown.items()]
    if simulated:
        lines += ["", "*Simulated: the embedded demo bench, no real machine.*"]
    return "\n".join(lines)


def environment(active: ActiveBench | None, header: list[str]) -> dict[str, str]:
    """What Allure's environment says: versions, host, bench, and whether it is simulated."""
    found = machine()
    if active is None:
        found["Bench"] = "; ".join(line.removeprefix("thermal: ") for line in header[:2])
        return found
    bench = active.bench
    found["Bench"] = f"{bench.name} ({active.chosen_by})"
    found["Evidence"] = "SIMULATED (demo bench)" if bench.demo else "measured"
    for domain in bench.domains[:8]:
        found[f"Gateway {domain.name}"] = "embedded demo gateway" if bench.demo else domain.base_url
    return found


def machine() -> dict[str, str]:
    """Versions and host."""
    return {
        "pytest-thermal": __version__,
        "pytest": pytest.__version__,
        "Python": platform.python_version(),
        "Host": f"{platform.node()} ({platform.system()} {platform.release()}, {platform.machine()})",
    }


def _first_line(item: pytest.Item) -> str:
    doc = getattr(getattr(item, "obj", None), "__doc__", None) or ""
    return doc.strip().splitlines()[0].rstrip(".") if doc.strip() else ""


def _markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def _escape(text: str, *, key: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", " ")
    return text.replace(" ", "\\ ").replace("=", "\\=").replace(":", "\\:") if key else text
