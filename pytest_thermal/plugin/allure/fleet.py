"""A fleet's results in Allure: whom each is about, its place in the tree, the map of the fleet on its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.model import Outcome
from pytest_thermal.plugin.active_bench import active_bench
from pytest_thermal.plugin.fleet_checks.fixtures import node_told
from pytest_thermal.plugin.keys import FLEET

if TYPE_CHECKING:
    from pytest_thermal.model import Finding
    from pytest_thermal.plugin.allure.pictures import Noted
    from pytest_thermal.plugin.fleet_checks.session import FleetSession
    from pytest_thermal.reporting.pictures.fleet_map import FleetMap

MOST_PICTURES = 40
MOST_PAGE_BYTES = 4_000_000
MOST_NODES = 60
"""Told of one by one in the environment."""
STORY = {
    "node": "nodes",
    "simultaneous": "common start",
    "consistency": "cards side by side",
    "place": "places in the racks",
}


def is_pictured(finding: Finding) -> bool:
    """Whether the map of the fleet belongs to a finding."""
    return finding.outcome is Outcome.FAILED and finding.check in ("consistency", "place", "node")


def place_in_tree(finding: Finding) -> tuple[str, str]:
    """Feature and story."""
    return STORY.get(finding.check, finding.check), node_told(finding) if finding.check == "node" else finding.subject


def bench_told(config: pytest.Config, finding: Finding) -> str:
    """The bench of the runs that a finding is about."""
    judgement = config.stash[FLEET].judgement
    run = judgement.run(finding.subject) if finding.check == "node" else next(iter(judgement.runs.values()), None)
    name = run.bench if run is not None else ""
    simulated = " (simulated)" if finding.evidence.get("simulated") else ""
    return f"{name or 'fleet'}{simulated}"


def illustrate_fleet(config: pytest.Config, folder: Path, noted: Sequence[Noted]) -> None:
    """Give the results the map of the fleet, and the fleet's page. Never raises."""
    session = config.stash.get(FLEET, None)
    mine = [one for one in noted if one.node]
    if session is None or not mine or not folder.is_dir():
        return
    try:
        _illustrate(session, folder, mine)
    except Exception as error:  # noqa: BLE001 - the words are written already
        text = f"thermal: the fleet's pictures could not be drawn: {type(error).__name__}: {error}"
        config.issue_config_time_warning(pytest.PytestWarning(text), stacklevel=2)


def _illustrate(session: FleetSession, folder: Path, noted: Sequence[Noted]) -> None:
    from pytest_thermal.reporting.allure_amendments import WrittenResults
    from pytest_thermal.reporting.allure_descriptions import finding_text, picture_text
    from pytest_thermal.reporting.pictures import why_no_pictures
    from pytest_thermal.reporting.pictures.fleet_map import paint_fleet

    clean = active_bench(session.config).redactor.text
    results = WrittenResults(folder, [one.result_id for one in noted])
    if session.report is not None and session.report.stat().st_size <= MOST_PAGE_BYTES:
        results.attach_to_run(
            session.report.read_bytes(), name="the fleet's page (fleet.html)", kind="text/html", suffix="html"
        )
    why_none = why_no_pictures()
    left = MOST_PICTURES
    for one in noted:
        texts = []
        for finding in one.findings:
            text = clean(finding_text(finding, simulated=one.simulated))
            if is_pictured(finding):
                told = None if why_none or left <= 0 else next(_maps(session, finding), None)
                left -= told is not None
                text += f"\n\n{picture_text(paint_fleet(told))}" if told is not None else _no_picture(why_none)
            texts.append(text)
        if any(map(is_pictured, one.findings)):
            results.amend(one.result_id, description="\n\n".join(texts))


def _no_picture(why_none: str) -> str:
    return f"\n\n*No picture: {why_none or 'the fleet page (fleet.html) has it'}*"


def _maps(session: FleetSession, finding: Finding) -> Iterator[FleetMap]:
    """The map that shows a finding, with what it is about framed."""
    from pytest_thermal.findings.fleet.overview import matrices
    from pytest_thermal.findings.fleet.side_by_side import family_of, position_of
    from pytest_thermal.reporting.pictures.fleet_map import fleet_map

    fleet = session.judgement
    nodes = [name for name in fleet.roster.nodes if fleet.run(name) is not None]
    for matrix in matrices(fleet):
        family = fleet.families[matrix.family]
        if finding.check == "consistency" and family.name != family_of(finding.subject):
            continue
        if finding.check == "consistency":
            marked = {(card.node, card.device) for _, _, card in family.outliers(finding.subject)}
        elif finding.check == "node":
            marked = {key for key in matrix.cells if key[0] == finding.subject}
        else:
            kind, _, name = str(finding.evidence.get("place", "")).partition(f"{finding.subject} ")
            marked = {
                (card.node, card.device)
                for card in family.cards.values()
                if not kind and position_of(card, fleet.places).get(finding.subject) == name
            }
        if marked:
            yield fleet_map(matrix, nodes, marked, simulated=fleet.is_simulated())


def node_environments(session: FleetSession) -> dict[str, dict[str, str]]:
    """What the environment of each node says: its run, and what the run knows of the machine."""
    fleet = session.judgement
    found = {}
    for name in fleet.roster.nodes:
        run = fleet.run(name)
        if run is None:
            found[name] = {"Node": name, "Run": "none", "Evidence": "none"}
            continue
        known = {key: str(text) for key, text in run.conditions.items()}
        versions = [f"{key.removeprefix('driver ')} {text}" for key, text in known.items() if key.startswith("driver ")]
        told = {
            "Node": name,
            "Run": f"{run.path.name} ({run.state})",
            "Bench": run.bench,
            "Evidence": "SIMULATED (demo bench)" if run.simulated else "measured" if not run.trouble else "none",
            "Product": known.get("product", ""),
            "BIOS": known.get("bios", ""),
            "Cards": known.get("model of the cards", ""),
            "Firmware": known.get("firmware of the cards", ""),
            "Drivers": "; ".join(versions),
            "Trouble": str(run.trouble),
        }
        found[name] = {key: text for key, text in told.items() if text}
    return found


def fleet_environment(session: FleetSession) -> dict[str, str]:
    """What Allure's environment says of a fleet: its size, where its runs lie, and a line for each node."""
    fleet = session.judgement
    found = {
        "Fleet": f"{len(fleet.roster.nodes)} nodes, {len(fleet.runs)} of them with a run",
        "Evidence": "SIMULATED (demo bench)" if fleet.is_simulated() else "measured",
    }
    for name in list(fleet.roster.nodes)[:MOST_NODES]:
        run = fleet.run(name)
        if run is None:
            found[f"Node {name}"] = "no run"
            continue
        told = [run.path.name, run.state, run.bench]
        told += [f"{key.removeprefix('driver ')} {value}" for key, value in run.conditions.items() if "driver" in key]
        found[f"Node {name}"] = "; ".join(filter(None, told))
    return found
