"""What a reviewer finds in the Allure results."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.plugin_runs import Run

pytest.importorskip("allure_pytest")


def results(folder: Path) -> dict[str, dict[str, Any]]:
    loaded = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*-result.json")]
    return {result["fullName"].rsplit("#", 1)[-1]: result for result in loaded}


def labels(result: dict[str, Any]) -> dict[str, str]:
    return {label["name"]: label["value"] for label in result["labels"]}


def test_failed_check_carries_layer_words_and_exchange(gate: Run, pytester: pytest.Pytester) -> None:
    folder = pytester.path / "results"
    assert gate("--demo-fault", "key-wrong", "--alluredir", folder).ret == 1
    found = results(folder)
    key = found["test_key"]
    assert key["status"] == "failed"
    assert key["statusDetails"]["message"].startswith("key: 401 Unauthorized")
    assert key["name"] == "The gateway takes this bench's key, and would not answer without it"
    assert labels(key)["feature"] == "key"
    assert labels(key)["severity"] == "critical"
    assert {"name": "tag", "value": "simulated"} in key["labels"]
    for result in found.values():  # also of those that were skipped: merged, none is a retry of another machine's
        told = {one["name"]: one["value"] for one in result["parameters"]}
        assert (told["node"], told["bench"]) == (platform.node(), "demo (simulated)")
        assert labels(result)["node"] == platform.node()
    assert "likely: " in key["description"]
    assert "Simulated" in key["description"]
    exchange = next(part for part in key["attachments"] if part["name"] == "key: exchange")
    text = (folder / exchange["source"]).read_text(encoding="utf-8")
    assert "GET" in text
    assert "< 401" in text
    assert "authorization" not in text.lower().replace("www-authenticate", "")
    assert found["test_chat"]["status"] == "skipped"
    assert "since key: " in found["test_chat"]["statusDetails"]["message"]


def test_inconclusive_is_broken_not_failed(gate: Run, pytester: pytest.Pytester) -> None:
    folder = pytester.path / "results"
    gate("--demo", "--token-budget", "10", "-k", "test_concurrency", "--alluredir", folder)
    assert results(folder)["test_concurrency"]["status"] == "broken"


def test_environment_names_bench_and_that_it_is_simulated(gate: Run, pytester: pytest.Pytester) -> None:
    folder = pytester.path / "results"
    gate("--demo", "-k", "test_http", "--alluredir", folder)
    text = (folder / "environment.properties").read_text(encoding="utf-8")
    assert "Evidence=SIMULATED (demo bench)" in text
    assert "Tokens=0 output and 0 prompt tokens in 0 requests" in text
    assert "Bench=" in text
    assert f"Node={platform.node()}\n" in text
    assert "pytest-thermal=" in text


def test_under_xdist_the_environment_is_there_too(gate: Run, pytester: pytest.Pytester) -> None:
    folder = pytester.path / "results"
    gate("--demo", "-n", "2", "-k", "test_http", "--alluredir", folder)
    assert "DEMO" in (folder / "environment.properties").read_text(encoding="utf-8").upper()
    assert results(folder)["test_http"]["status"] == "passed"
