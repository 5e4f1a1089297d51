"""The fleet's suite as a user runs it: ids, words, table, page, gate, Allure, and one reading of all under xdist."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_thermal.reporting.allure_results import node_facts
from pytest_thermal.reporting.gate_document import schema
from tests.analysis.signals import EPOCH
from tests.findings.fleet_archives import LEFT_OUT, card_of, request_rows, write_fleet
from tests.plugin.plugin_runs import AS_INSTALLED, REPO, Run, cases

FLEET = REPO / "suites" / "fleet"
PLACES = '[fleet]\nname = "pod 3"\n[[node]]\nhost = "n[1-9]"\nbranch = "A"\n'.replace("n[1-9]", "n[01-04]") + (
    '[[node]]\nhost = "n[05-08]"\nbranch = "B"\n'
)


class Ended:
    """One run over a fleet with a missing node, a bad card, a limited node and a log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        archive = folder / "runs"
        rows: dict[str, Any] = {f"n{number:02}": {"requests": request_rows(0.05)} for number in range(1, 9)}
        rows["n03"]["rises"] = {2: 12.0}
        rows["n04"] = {"requests": request_rows(0.05, limited=0.5)}
        rows["n06"] = LEFT_OUT
        write_fleet(archive, 8, **rows)
        (archive / "fleet.toml").write_text(PLACES)
        environ = {name: text for name, text in os.environ.items() if not name.startswith(("THERMAL_", "PYTEST_"))}
        self.done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", FLEET, *AS_INSTALLED, "--runs", "runs", "--gate"),
                *("--alluredir", "allure", "--junitxml", "junit.xml"),
            ],
            cwd=folder,
            env={**environ, "COLUMNS": "80"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
            check=False,
        )
        self.output = self.done.stdout
        self.cases = cases(folder / "junit.xml")

    def result(self, title: str) -> dict[str, Any]:
        """What Allure has of the test whose title ends so."""
        for file in (self.folder / "allure").glob("*-result.json"):
            told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if told["name"].endswith(title):
                return told
        raise AssertionError(title)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return Ended(tmp_path_factory.mktemp("fleet"))


def test_ids_and_outcomes(ended: Ended) -> None:
    assert ended.done.returncode == pytest.ExitCode.TESTS_FAILED
    bad = {name: outcome for name, (outcome, _) in ended.cases.items() if outcome != "passed"}
    assert bad == {
        "test_node[n04]": "failure",
        "test_node[n06]": "failure",
        f"test_consistency[{card_of(2)}]": "failure",
    }
    assert {f"test_node[n0{number}]" for number in range(1, 9)} < ended.cases.keys()
    assert {"test_simultaneous", "test_place[branch]"} < ended.cases.keys()


def test_messages_are_the_findings_own(ended: Ended) -> None:
    _, message = ended.cases[f"test_consistency[{card_of(2)}]"]
    assert message.startswith(f"consistency: {card_of(2)}: n03 gpu2 (branch A): rise")
    assert "\nlikely: " in message
    assert "\ntry: " in message
    assert ended.cases["test_node[n06]"][1].startswith("inconclusive: node: n06 is missing: fleet.toml tells of it")
    assert "Traceback" not in ended.output


def test_the_terminal_has_the_table_in_80_columns(ended: Ended) -> None:
    lines = ended.output.splitlines()
    table = lines[next(i for i, line in enumerate(lines) if "= fleet =" in line) :]
    row = next(line for line in table if line.startswith("  n03 "))
    assert "gpu2 +1" in row
    assert row.endswith("gpu2 off")
    assert next(line for line in table if line.startswith("  n04 ")).split()[-2:] == ["90", "failed"]
    assert next(line for line in table if line.startswith("  n06 ")).endswith("open")
    assert "    limited by quota (429): n04; met: it does not say which × 90" in table
    shown = table[: next(i for i, line in enumerate(table) if "short test summary" in line)]
    assert max(map(len, shown)) <= 80


def test_the_page_stands_where_it_is_said_to(ended: Ended) -> None:
    page = ended.folder / "reports" / "fleet.html"
    assert f"report: {page}" in ended.output
    assert "Fleet pod 3" in page.read_text(encoding="utf-8")


def test_the_gate_knows_what_the_fleet_found(ended: Ended) -> None:
    told = json.loads((ended.folder / "reports" / "gate.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker()).validate(told)
    assert told["decision"] == "no-go"
    assert {item["check"] for item in told["blocking"] if item["kind"] == "failed"} == {"node", "consistency"}
    said = [item["seen"] for item in told["blocking"] if item["kind"] == "run"]
    assert said[0] == "no access check was collected"  # what the nodes brought back are thermal runs
    assert len(said) < 8  # what is wrong with the run of each node is told once
    assert any(text.endswith(" more like this") for text in said)


def test_allure_has_node_place_and_the_map(ended: Ended) -> None:
    told = ended.result(f"[{card_of(2)}]")
    assert [label["value"] for label in told["labels"] if label["name"] == "node"] == ["n03"]
    assert {"name": "bench", "value": "pod"} in told["parameters"]
    assert [label["value"] for label in told["labels"] if label["name"] == "epic"] == ["Fleet"]
    assert "data:image/png;base64," in told["description"] or "No picture" in told["description"]
    assert [label["value"] for label in ended.result("[n06]")["labels"] if label["name"] == "node"] == ["n06"]
    environment = (ended.folder / "allure" / "environment.properties").read_text(encoding="utf-8")
    assert "Node\\ n06=no run" in environment
    own = {node: node_facts(ended.folder / "allure", node) for node in ("n01", "n06", "fleet")}
    assert own["n06"]["Run"] == "none"
    assert own["n01"]["Run"].endswith("_n01 (finished)")
    assert own["n01"]["Evidence"] == "measured"
    assert not [name for name in own["n01"] if name.startswith("Node ")]  # nobody else's
    assert own["fleet"]["Node n06"] == "no run"
    assert "Evidence=measured" in environment
    assert "demo" not in environment


def test_junit_has_the_node_of_each_finding(ended: Ended) -> None:
    text = (ended.folder / "junit.xml").read_text(encoding="utf-8")
    assert '<property name="thermal_node" value="n03"' in text
    assert '<property name="thermal_run_directory"' not in text


def test_under_xdist_all_of_it_stays_on_one_worker_and_is_told_once(run: Run, pytester: pytest.Pytester) -> None:
    def simulate(facts: dict[str, Any]) -> None:
        facts["simulated"] = True

    nodes: dict[str, Any] = {f"n{number:02}": {"facts": simulate} for number in range(1, 7)}
    nodes["n01"]["start"] = EPOCH + 90  # so that the advisory test has something to say
    write_fleet(pytester.path / "runs", 6, **nodes)
    result = run(FLEET, "--runs", "runs", "-n", "2", "--gate")
    result.assert_outcomes(passed=10, skipped=1, xfailed=1)
    output = result.stdout.str()
    assert output.count("6 nodes: 6 passed") == 1
    assert "SIMULATED" in output
    told = json.loads((pytester.path / "reports" / "gate.json").read_text(encoding="utf-8"))
    assert told["decision"] == "not decided"
    assert [item["kind"] for item in told["blocking"]].count("simulated") == 10
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    "text, words",
    [
        ('[[node]]\nhost = "n1"\nbrnch = "A"\n', ["brnch", "nearest known key: branch", "try: "]),
        (None, ["--runs: ", "there is no such folder", "try: "]),
    ],
)
def test_what_cannot_be_used_is_a_usage_error(
    run: Run, pytester: pytest.Pytester, text: str | None, words: list[str]
) -> None:
    if text is not None:
        (pytester.path / "runs").mkdir()
        (pytester.path / "runs" / "fleet.toml").write_text(text)
    result = run(FLEET, "--runs", "runs")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = " ".join(result.stderr.str().split())
    assert all(word in told for word in words), told
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_an_archive_without_runs_passes_nothing_and_nobody_asked_is_no_fleet(
    run: Run, pytester: pytest.Pytester
) -> None:
    (pytester.path / "runs").mkdir()
    result = run(FLEET, "--runs", "runs")
    result.assert_outcomes(failed=2, skipped=2)
    output = result.stdout.str()
    assert "inconclusive: node: no node none: no run of it lies below" in output
    assert "Error" not in output
    (pytester.path / "test_own.py").write_text((FLEET / "test_01_nodes.py").read_text(encoding="utf-8"))
    unasked = run("--runs", "runs", "-rs")
    unasked.assert_outcomes(skipped=2)
    assert "not asked for: pytest suites/fleet --runs DIR" in unasked.stdout.str()
