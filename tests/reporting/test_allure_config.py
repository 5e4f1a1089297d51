from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_thermal.model import LAYERS
from pytest_thermal.reporting.allure_config import allure_config, categories


def category_of(status: str, message: str) -> str | None:
    """The first category that takes a result, as Allure goes through them."""
    for category in categories():
        matchers = category["matchers"]
        if status in matchers["statuses"] and re.search(matchers["message"], message):
            return str(category["name"])
    return None


@pytest.mark.parametrize(
    "status, message, expected",
    [
        ("failed", "Failed: key: 401 Unauthorized from GET /v1/models\nlikely: …", "Access fault"),
        ("failed", "key: 401 Unauthorized from GET /v1/models", "Access fault"),
        ("failed", "pytest_thermal.plugin.outcomes.FindingFailed: tls: expired 3 days ago", "Access fault"),
        ("broken", "plugin.outcomes.Inconclusive: inconclusive: quota: no answer", "Inconclusive"),
        ("skipped", "Skipped: blocked: key: 401 Unauthorized", "Blocked"),
        ("skipped", "XFAIL tls: the certificate ends in 12 days", "Advisory"),
        ("skipped", "Skipped: interconnect: no RDMA device on this machine", None),
        ("failed", "AssertionError: assert 1 == 2", None),
        ("failed", "AssertionError: the monkey: 3", None),
        ("broken", "httpx.ConnectError: connection: refused", None),
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
    for category in categories():
        assert "(?P" not in category["matchers"]["message"]
        assert not re.search(r"\(\?[aiLmsux]", category["matchers"]["message"])


def test_the_page_is_one_file_with_a_tree_of_layers() -> None:
    config = allure_config(
        title="t", output=Path("/o"), history=Path("/h.jsonl"), history_runs=20, variables={"a": "b"}
    )
    options = config["plugins"]["awesome"]["options"]
    assert options["singleFile"] is True
    assert options["groupBy"] == ["epic", "feature", "story"]
    assert config["historyPath"] == "/h.jsonl"
    assert "node" not in config["hideLabels"]
