from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.findings import CHECKS
from pytest_thermal.model import LAYERS
from pytest_thermal.reporting.allure_config import allure_config, categories, config_file


def category_of(status: str, message: str) -> str | None:
    """The first category that takes a result, as Allure goes through them."""
    for category in categories():
        for matcher in matchers_of(category):
            if status in matcher["statuses"] and re.search(matcher.get("message", ""), message):
                return str(category["name"])
    return None


def matchers_of(category: dict[str, Any]) -> list[dict[str, Any]]:
    """One or several."""
    matchers = category["matchers"]
    return matchers if isinstance(matchers, list) else [matchers]


@pytest.mark.parametrize(
    "status, message, expected",
    [
        ("failed", "Failed: key: 401 Unauthorized from GET /v1/models\nlikely: …", "Access fault"),
        ("failed", "key: 401 Unauthorized from GET /v1/models", "Access fault"),
        ("failed", "pytest_thermal.plugin.outcomes.FindingFailed: tls: expired 3 days ago", "Access fault"),
        ("broken", "plugin.outcomes.Inconclusive: inconclusive: quota: no answer", "Not measured (inconclusive)"),
        ("failed", "rise: gpu0.temperature_celsius rose by 53.4 °C, more than 40 °C\nlikely: …", "Thermal fault"),
        ("failed", "plugin.outcomes.FindingFailed: pump: pump0.speed_rpm stood still", "Thermal fault"),
        ("failed", "phase: steady lasted for 9 min, but the load was taken off: gpu0 is at 96 °C", "Thermal fault"),
        ("failed", "load: gpu0 was not loaded in full in steady: utilisation is 74 %", "Load not proven"),
        ("failed", "phase: steady lasted for 9 min, but the cpu load (stress-ng) was lost: …", "Load not proven"),
        ("failed", "phase: steady lasted for 9 min, but 90 of its 99 requests failed: 503", "Load not proven"),
        ("broken", "inconclusive: rise: gpu1 was not loaded in full in steady: …", "Load not proven"),
        ("broken", "inconclusive: settled: whether gpu0 was loaded is not known: …", "Load not proven"),
        ("broken", "inconclusive: settled: whether gpu0 has settled is not known: …", "Not measured (inconclusive)"),
        ("broken", "ExperimentBrokenError: baseline: the bench is not idle: cpu0 is at 60 %", "Environment"),
        ("skipped", "Skipped: blocked: key: 401 Unauthorized", "Blocked"),
        ("skipped", "XFAIL tls: the certificate ends in 12 days", "Advisory"),
        ("skipped", "Skipped: interconnect: no RDMA device on this machine", None),
        ("failed", "AssertionError: assert 1 == 2", None),
        ("failed", "AssertionError: the monkey: 3", None),
        ("broken", "httpx.ConnectError: connection: refused", "Environment"),
        ("passed", "", None),
    ],
)
def test_category(status: str, message: str, expected: str | None) -> None:
    assert category_of(status, message) == expected


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_is_an_access_fault(layer: str) -> None:
    assert category_of("failed", f"FindingFailed: {layer}: seen") == "Access fault"


def test_patterns_are_written_for_javascript_too() -> None:
    """Python's inline flags and named groups would be refused there, and the category lost without a word."""
    patterns = [matcher.get("message", "") for category in categories() for matcher in matchers_of(category)]
    assert len(patterns) > 8
    for pattern in patterns:
        assert "(?P" not in pattern
        assert not re.search(r"\(\?[aiLmsux]", pattern)


def test_the_page_is_one_file_with_a_tree_of_layers() -> None:
    config = config_of({"bench-07": {"Host": "x"}})
    options = config["plugins"]["awesome"]["options"]
    assert options["singleFile"] is True
    assert options["groupBy"] == ["epic", "feature", "story"]
    assert config["historyPath"] == "/h.jsonl"
    assert "node" not in config["hideLabels"]
    assert "environments" not in config
    name, text = config_file(config)
    assert name == "allurerc.json"
    assert json.loads(text) == config


def test_several_nodes_are_an_environment_each_with_their_own_facts() -> None:
    config = config_of({"bench-07": {"Driver": "570"}, 'bench-"08"': {"Driver": "580"}})
    assert config["environments"]["bench-07"] == {"variables": {"Driver": "570"}}
    name, text = config_file(config)
    assert name == "allurerc.mjs"  # only a function says whose a result is
    head, _, rest = text.partition(";\nfor (")
    assert json.loads(head.removeprefix("const config = ")) == config
    assert 'label.name === "node" && label.value === node' in rest
    assert rest.rstrip().endswith("export default config;")


def config_of(nodes: dict[str, dict[str, str]]) -> dict[str, Any]:
    return allure_config(
        title="t", output=Path("/o"), history=Path("/h.jsonl"), history_runs=20, variables={"a": "b"}, nodes=nodes
    )


@pytest.mark.parametrize("check", CHECKS)
def test_every_thermal_check_that_failed_has_a_category(check: str) -> None:
    expected = "Load not proven" if check == "load" else "Thermal fault"
    assert category_of("failed", f"FindingFailed: {check}: seen") == expected
