"""`--ocp-diag FILE` in real runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.plugin.evidence.ocp_diag_file import OcpDiagFile
from tests.plugin.plugin_runs import REPO, Run
from tests.plugin.thermal_runs import THERMAL


def documents(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_log_that_is_judged_again_is_written_as_ocp(run: Run, pytester: pytest.Pytester) -> None:
    file = pytester.path / "out" / "ocp.jsonl"
    file.parent.mkdir()
    file.write_text("what an earlier run left\n")
    run(
        THERMAL,
        "--replay",
        REPO / "fixtures" / "logs" / "wide.csv",
        "--ocp-diag",
        "out/ocp.jsonl",
        "-k",
        "rise",
        "-n",
        "1",
    )
    found = documents(file)
    assert found[-1]["testRunArtifact"]["testRunEnd"] == {"status": "ERROR", "result": "NOT_APPLICABLE"}
    told = [one["testStepArtifact"]["diagnosis"] for one in found if "diagnosis" in one.get("testStepArtifact", {})]
    assert {one["verdict"] for one in told} == {"rise-pass", "rise-unknown"}
    measured = [one["testStepArtifact"].get("measurement", {}) for one in found if "testStepArtifact" in one]
    assert "rise_celsius" in {one.get("name") for one in measured}


def test_a_file_that_cannot_be_written_ends_the_run_at_once(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(): pass")
    (pytester.path / "file").write_text("")
    result = run("--ocp-diag", "file/ocp.jsonl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--ocp-diag: " in result.stderr.str()
    assert "cannot be written" in result.stderr.str()


def test_without_the_library_it_says_what_to_install(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig("--ocp-diag", "ocp.jsonl")
    with pytest.raises(pytest.UsageError, match="try: pip install 'pytest-thermal\\[ocp\\]'"):
        OcpDiagFile(config, has=lambda _: False)
    assert not (pytester.path / "ocp.jsonl").exists()
