"""Each phase in a line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.reporting.phase_figures import PhaseFigures, phase_figures
from tests.findings.recordings import (
    CPU_WATTS,
    GPU,
    PLAN,
    WATTS,
    changed,
    healthy,
    in_phase,
    judged,
    requests,
    without,
    without_phase,
)


def found(recording: object, *planned: str) -> dict[str, PhaseFigures]:
    return {one.name: one for one in phase_figures(judged(recording), planned)}  # type: ignore[arg-type]


def test_a_phase_ends_as_hot_as_its_last_readings_and_not_as_its_peak() -> None:
    run = changed(healthy(), GPU, lambda values, _: np.where(np.arange(values.size) == 300, 97.0, values))
    lines = found(run)
    assert list(lines) == ["baseline", "ramp", "steady", "cooldown"]
    values = run.series[GPU].values
    assert lines["steady"].accelerator_celsius == np.median(values[in_phase("steady")][-5:])
    assert lines["baseline"].accelerator_celsius == np.median(values[in_phase("baseline")][-5:])
    drawn = sum(np.median(run.series[name].values[in_phase("steady")][-5:]) for name in (WATTS, CPU_WATTS))
    assert lines["steady"].watts == pytest.approx(drawn)
    assert lines["steady"].seconds == pytest.approx(2400.0)
    assert {one.outcome for one in lines.values()} == {"passed"}


def test_what_was_not_measured_is_nothing_and_not_zero() -> None:
    run = without(healthy(), *(name for name in healthy().series if name.startswith("gpu0") or "power" in name))
    steady = found(replace(run, requests=None))["steady"]
    assert (steady.accelerator_celsius, steady.watts, steady.requests, steady.failed) == (None, None, None, None)
    assert steady.cpu_celsius is not None
    gone = changed(healthy(), GPU, lambda values, _: np.where(in_phase("steady"), np.nan, values))
    assert found(gone)["steady"].accelerator_celsius is None
    assert found(gone)["cooldown"].accelerator_celsius is not None


def test_a_phase_that_was_planned_and_not_gone_through_is_there() -> None:
    lines = found(without_phase(healthy(), "cooldown"), "baseline", "ramp", "steady", "cooldown")
    assert (lines["cooldown"].seconds, lines["cooldown"].outcome) == (None, "inconclusive")


def test_requests_are_those_of_the_phase() -> None:
    starts = np.array([PLAN.load_on + 130.0 + index for index in range(4)])
    run = replace(healthy(), requests=requests(starts, np.ones(4), [200, 200, 503, 200], ["", "", "busy", ""]))
    lines = found(run)
    assert (lines["steady"].requests, lines["steady"].failed) == (4, 1)
    assert (lines["baseline"].requests, lines["baseline"].failed) == (0, 0)
