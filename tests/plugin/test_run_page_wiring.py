"""A page that cannot be written is told, and takes nothing along."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_thermal.plugin.thermal_checks.live_session import LiveSession
from tests.findings.recordings import healthy, judged


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyError("seen"), ZeroDivisionError()])
def test_a_page_that_fails_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config, error: Exception
) -> None:
    told: list[str] = []

    def fail(*_: object, **__: object) -> Path:
        raise error

    monkeypatch.setattr("pytest_thermal.reporting.run_page.write_page", fail)
    session: Any = SimpleNamespace(
        config=pytestconfig,
        _active=SimpleNamespace(bench=SimpleNamespace(secrets=list)),
        judgement=lambda: judged(healthy()),
        path=Path("runs/one"),
        report=None,
        _warn=told.append,
    )
    LiveSession._write_page(session, {"findings": []})
    assert session.report is None
    (text,) = told
    assert type(error).__name__ in text
    assert "try: python -m pytest_thermal.reporting.run_page runs/one --out FILE" in text
