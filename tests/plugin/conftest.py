"""Runs of pytest with the plugin, as a user would start them: in a process and a folder of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.plugin.plugin_runs import AS_INSTALLED, SUITE, Run


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Start pytest with arguments, and with an environment that knows no bench and no proxy."""
    for name in list(os.environ):
        if name.startswith("THERMAL_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")

    def start(*args: str | Path, env: Mapping[str, str] | None = None) -> pytest.RunResult:
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        ended: pytest.RunResult = pytester.runpytest_subprocess(*AS_INSTALLED, *map(str, args), timeout=100)
        return ended

    return start


@pytest.fixture
def gate(run: Run) -> Run:
    """Start the access suite with arguments."""

    def start(*args: str | Path, env: Mapping[str, str] | None = None) -> pytest.RunResult:
        return run(SUITE, *args, env=env)

    return start
