"""Pictures in Allure's results, drawn when the run has ended: drawing would burn on the bench that is measured."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.model import Outcome
from pytest_thermal.model.said import say
from pytest_thermal.plugin.evidence.node import node_of
from pytest_thermal.plugin.keys import ACTIVE_BENCH, THERMAL
from pytest_thermal.plugin.language import catalogue

if TYPE_CHECKING:
    from pytest_thermal.findings import Judgement
    from pytest_thermal.model import Finding
    from pytest_thermal.reporting.allure_amendments import Attachment, WrittenResults
    from pytest_thermal.reporting.pictures import Picture

KEY_CHECKS = ("rise", "threshold")
"""Drawn also where they passed, for the temperature that stands for its device: what a reviewer looks at first."""
MOST_PICTURES = 60
MOST_CPU_SECONDS = 20.0
"""For one run: one with hundreds of bad findings has a few causes, and its report is to be mailed."""
MOST_PAGE_BYTES = 4_000_000
_BAD = (Outcome.FAILED, Outcome.INCONCLUSIVE)


@dataclass(frozen=True, kw_only=True)
class Noted:
    """A result that allure-pytest has written, and the findings it is about."""

    result_id: str
    findings: Sequence[Finding]
    simulated: bool
    node: str = ""
    """Whom it is about, or several with commas, where that is not the node of the whole run: of a fleet's findings."""
    bench: str = ""


def is_pictured(finding: Finding) -> bool:
    """Whether a picture belongs to a finding of a thermal run; whether it stands for its device is seen later."""
    if finding.check == "phase":
        return finding.outcome is not Outcome.SKIPPED
    return finding.outcome in _BAD or (finding.check in KEY_CHECKS and finding.outcome is Outcome.PASSED)


def illustrate(config: pytest.Config, folder: Path, noted: Sequence[Noted]) -> None:
    """Give the results their pictures, the run's page and its figures as metrics. Never raises.

    A run is not lost because its pictures cannot be drawn: the words are written already.
    """
    session = config.stash.get(THERMAL, None)
    if session is None or session.path is None or not folder.is_dir():
        return
    from pytest_thermal.recording.layout import REPORT

    try:
        judgement = session.judgement()
        _metrics(judgement, folder, node_of(config))
        mine = [one for one in noted if any(is_pictured(finding) for finding in one.findings)]
        if mine:
            _Illustrator(config, judgement, folder, mine, page=session.report or session.path / REPORT).run(mine)
    except Exception as error:  # noqa: BLE001 - see above
        text = f"thermal: Allure's pictures could not be drawn: {type(error).__name__}: {error}"
        config.issue_config_time_warning(pytest.PytestWarning(text), stacklevel=2)


class _Illustrator:
    """Draws for one run."""

    def __init__(
        self, config: pytest.Config, judgement: Judgement, folder: Path, noted: Sequence[Noted], *, page: Path
    ) -> None:
        from pytest_thermal.reporting.allure_amendments import WrittenResults
        from pytest_thermal.reporting.pictures import Painter, View, why_no_pictures

        self._config = config
        active = config.stash.get(ACTIVE_BENCH, None)
        self._clean = str if active is None else active.redactor.text
        self._told = catalogue(config)
        self._results: WrittenResults = WrittenResults(folder, [one.result_id for one in noted])
        self._view = View(judgement)
        self._why_none = why_no_pictures()
        self._painter = None if self._why_none else Painter()
        self._page = page
        self._left = MOST_PICTURES
        self._until = time.process_time() + MOST_CPU_SECONDS

    def run(self, noted: Sequence[Noted]) -> None:
        """All of them, the most telling first: there may be more than are drawn."""
        self._attach_page()
        if self._config.stash[THERMAL].history is not None:
            self._attach_history()
        for one in sorted(noted, key=lambda one: min(_rank(finding) for finding in one.findings)):
            texts, attachments = [], []
            for finding in one.findings:
                text, added = self._described(finding, simulated=one.simulated)
                texts.append(text)
                attachments += added
            self._results.amend(one.result_id, description="\n\n".join(texts), attachments=attachments)

    def _described(self, finding: Finding, *, simulated: bool) -> tuple[str, list[Attachment]]:
        from pytest_thermal.reporting.allure_descriptions import picture_text

        words = thermal_words(self._view.judgement, finding, simulated=simulated, told=self._told)
        picture, why_none = self._picture(finding)
        if picture is not None:  # limits say where they came from, and a bench file may say anything
            svg = self._clean(picture.svg.decode("utf-8")).encode("utf-8")
            picture = replace(picture, svg=svg, caption=self._clean(picture.caption))
        if picture is None:
            return self._clean("\n\n".join([words, why_none] if why_none else [words])), []
        added = []
        if picture.svg:
            name = f"{finding.check} {finding.subject} (vector)"
            added = [self._results.attach(picture.svg, name=name, kind="image/svg+xml", suffix="svg")]
        return f"{self._clean(words)}\n\n{picture_text(picture)}", added

    def _picture(self, finding: Finding) -> tuple[Picture | None, str]:
        """The picture, or why there is none in a line; neither for a finding that needs none."""
        from pytest_thermal.reporting.pictures import finding_scene, phase_scene

        view = self._view
        if not is_pictured(finding) or (finding.outcome is Outcome.PASSED and self._is_minor(finding)):
            return None, ""
        if self._painter is None:
            return None, self._told(say("*No picture: {why_none}*", why_none=self._why_none))
        scene = phase_scene(view, finding.subject) if finding.check == "phase" else finding_scene(view, finding)
        if scene is None:
            return None, self._told(say("*No picture: nothing was recorded that could be drawn.*"))
        if self._left <= 0 or time.process_time() > self._until:
            name = view.recording.path.name
            many = say("*No picture: this run has many of them. `--replay {name} -k …` draws it.*", name=name)
            return None, self._told(many)
        self._left -= 1
        wanted = finding.check == "phase" or finding.outcome is Outcome.FAILED
        return self._painter.paint(scene, svg=wanted), ""

    def _is_minor(self, finding: Finding) -> bool:
        if finding.check == "phase":
            return False
        series = self._view.series(finding.subject)
        main = None if series is None else self._view.main(series.sensor.device)
        return main is None or main.sensor.id != finding.subject

    def _attach_page(self) -> None:
        """The run's own page: Allure shows its still form, a browser its curves."""
        try:
            if self._page.stat().st_size > MOST_PAGE_BYTES:
                return
            content = self._page.read_bytes()
        except OSError:
            return
        name = f"the run's page ({self._page.parent.name}/{self._page.name}; download it for its interactive curves)"
        self._results.attach_to_run(content, name=name, kind="text/html", suffix="html")

    def _attach_history(self) -> None:
        """How the bench changed from run to run; without links, since an attachment lies beside no run."""
        from pytest_thermal.plugin.thermal_checks.session import archive
        from pytest_thermal.reporting.history import history_html, read_archive

        content = history_html(read_archive(archive(self._config)), redact=self._clean).encode("utf-8", "replace")
        if len(content) <= MOST_PAGE_BYTES:
            name = f"history of the bench, as node {node_of(self._config)} has it"
            self._results.attach_to_run(content, name=name, kind="text/html", suffix="html")


def thermal_words(judgement: Judgement, finding: Finding, *, simulated: bool, told: Callable[[str], str] = str) -> str:
    """A finding in words and tables; of a phase also what changed in it."""
    from pytest_thermal.reporting.allure_descriptions import finding_text
    from pytest_thermal.reporting.phase_table import phase_table

    # That it lasted as long as planned is in its words already; what changed in it is not.
    table = phase_table(judgement, finding.subject, told) if finding.check == "phase" else None
    return finding_text(finding, simulated=simulated, table=table, told=told)


def _rank(finding: Finding) -> int:
    if finding.check == "phase":
        return 0
    return {Outcome.FAILED: 1, Outcome.INCONCLUSIVE: 2}.get(finding.outcome, 3)


def _metrics(judgement: Judgement, folder: Path, node: str) -> None:
    from pytest_thermal.reporting.allure_amendments import write_whole
    from pytest_thermal.reporting.allure_metrics import FILE, allure_metrics

    found: list[Mapping[str, object]] = list(allure_metrics(judgement, node=node))
    if found:
        content = json.dumps(found, ensure_ascii=False).encode("utf-8")
        # One name for one run: of xdist's workers each judges what is replayed, and Allure would count it for each.
        run = uuid.uuid5(uuid.NAMESPACE_OID, judgement.recording.path.name)
        write_whole(folder / FILE.format(id=run), content)
