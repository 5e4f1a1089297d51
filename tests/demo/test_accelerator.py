from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.demo import accelerator
from pytest_thermal.demo.state import FOLDER_VARIABLE
from tests.support.clock import Standing


def test_it_ends_by_itself_at_its_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    clock = Standing()
    monkeypatch.setattr(accelerator, "time", clock)
    monkeypatch.setattr(accelerator, "_product", Products(clock))
    assert accelerator.main(["--card", "1", "--limit", "9.5"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "simulated load of gpu1: 1 products"
    assert len(said) == 10  # one a second


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


class Products:
    """A product that takes a while, by a clock."""

    def __init__(self, clock: Standing) -> None:
        self._clock = clock
        self.seconds = 0.0

    def __call__(self, _left: object, _right: object) -> list[list[float]]:
        self.seconds += 0.004
        self._clock.now_seconds += 0.004
        return [[1.0]]


@pytest.mark.parametrize("limit_seconds", [0.0, 100.0])
def test_it_leaves_the_cores_to_others(limit_seconds: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    clock = Standing()
    products = Products(clock)
    monkeypatch.setattr(accelerator, "time", clock)
    monkeypatch.setattr(accelerator, "_product", products)
    begin = clock.now_seconds
    assert accelerator.main(["--limit", f"{limit_seconds}"]) == 0
    assert clock.now_seconds - begin >= limit_seconds
    assert products.seconds <= 0.02 * limit_seconds + 0.01
