"""Real heat and cool cycles, where they lie beside the checkout; they are no part of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_thermal.analysis import Answer, analyse_temperature, check_health, detect_phases
from pytest_thermal.model.series import Series
from tests.analysis.signals import EPOCH, series

CYCLES = Path(__file__).parents[3] / "shared" / "real_logs" / "arm-boards"

pytestmark = pytest.mark.skipif(not CYCLES.is_dir(), reason="no real recordings beside the checkout")


def cycle(name: str) -> Series:
    seconds, celsius = np.genfromtxt(CYCLES / name, delimiter=",", skip_header=1).T
    return series(EPOCH + seconds, celsius, period=float(np.median(np.diff(seconds))))


def names() -> list[str]:
    return sorted(file.name for file in CYCLES.glob("*.csv")) if CYCLES.is_dir() else []


@pytest.mark.parametrize("name", names())
def test_a_real_cycle_is_judged_or_refused_and_raises_nothing(name: str) -> None:
    readings = cycle(name)
    found = detect_phases(readings)
    assert bool(found.phases) != bool(found.reason)
    figures = analyse_temperature(readings, found.phases)
    assert figures.peak.value == readings.values.max()
    assert figures.health.stuck is Answer.NO
    assert figures.health.dropouts.value == 0
    if figures.settled is not None:
        assert figures.settled.settled is not Answer.YES  # none of these boards ran long enough to settle


def test_the_resolution_of_real_sensors_is_seen() -> None:
    steps = {name: check_health(cycle(name)).resolution.value for name in names()}
    assert {"1ixL.csv": 1.0, "4MB5.csv": 0.1, "4qpr.csv": 1.0}.items() <= steps.items()


def test_a_board_heated_by_its_benchmark_has_a_baseline_and_a_load() -> None:
    found = detect_phases(cycle("4MB5.csv"))
    assert [phase.name for phase in found.phases] == ["baseline", "ramp", "steady"]
    assert found.phases[0].end_seconds - EPOCH == pytest.approx(303, abs=15)


@pytest.mark.parametrize("name", ["1ixL.csv", "4qpr.csv"])
def test_a_board_that_goes_through_several_loads_is_refused(name: str) -> None:
    assert detect_phases(cycle(name)).phases == ()
