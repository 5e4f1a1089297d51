from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_thermal.demo import accelerator
from pytest_thermal.demo.state import ACCELERATOR_MODULE, FOLDER_VARIABLE


def test_it_ends_by_itself_at_its_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(accelerator, "_REPORT_SECONDS", 0.0)
    assert accelerator.main(["--card", "1", "--limit", "0.05"]) == 0
    assert "simulated load of gpu1: 1 products" in capsys.readouterr().out


def test_alone_it_says_who_is_to_start_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    assert accelerator.main([]) == 2
    assert "PYTEST_THERMAL_DEMO is not set" in capsys.readouterr().err


def test_a_computer_that_miscalculates_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    answers = iter([[[1.0]], [[1.0]], [[2.0]]])
    monkeypatch.setattr(accelerator, "_product", lambda _left, _right: next(answers))
    assert accelerator.main(["--limit", "30"]) == 1
    assert "every card: a product was not what it was before" in capsys.readouterr().out


def processor_seconds(folder: Path, limit_seconds: float) -> float:
    command = [sys.executable, "-P", "-m", ACCELERATOR_MODULE, "--limit", f"{limit_seconds}"]
    environ = {**os.environ, FOLDER_VARIABLE: str(folder)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as process:
        _, status, spent = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return spent.ru_utime + spent.ru_stime


def test_it_leaves_the_cores_to_others(tmp_path: Path) -> None:
    only_started = processor_seconds(tmp_path, 0.0)
    assert processor_seconds(tmp_path, 1.2) - only_started < 0.4
