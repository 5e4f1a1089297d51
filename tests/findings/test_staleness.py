"""A reading that is old and says ok is never a pass; a well-kept speed is no old reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.findings import Judgement
from pytest_thermal.model import Outcome
from pytest_thermal.model.series import Series
from pytest_thermal.recording import Recording
from tests.analysis.signals import Floats, quantised, white
from tests.findings.recordings import PLAN, healthy, judged, loaded, made_series

PASSED, OPEN = Outcome.PASSED, Outcome.INCONCLUSIVE
PUMP, FAN, BACK, SUPPLY, LEAK, SUPPLIES = (
    "pump1.speed_rpm", "fan1.speed_rpm", "coolant_return.temperature_celsius", "coolant_supply.temperature_celsius",
    "leak1.detector_state", "psu1.power_watts",
)  # fmt: skip
RNG = np.random.default_rng(4)
SIZE = PLAN.times.size
ON = loaded()
WARM = quantised(
    35.0 + np.interp(PLAN.times, PLAN.load_on + np.array([0.0, 300.0, 2520.0, 2820.0]), [0.0, 4.0, 4.0, 0.0]), 1.0
)
BASE = int(np.argmax(ON))


def constant(value: float) -> Floats:
    return np.full(SIZE, value)


def wavering(level: float, step: float) -> Floats:
    return quantised(level + white(RNG, SIZE, step), step)


def frozen(values: Floats, first: int, last: int = SIZE) -> Floats:
    held = values.copy()
    held[first:last] = held[first - 1]
    return held


def with_bmc(**values: Floats) -> Recording:
    """The healthy run beside a BMC that gives these; ``_`` stands for the dot."""
    run = healthy()
    names = {PUMP: "pump", FAN: "fan", BACK: "back", SUPPLY: "supply", LEAK: "leak", SUPPLIES: "watts"}
    more: dict[str, Series] = {}
    for name, short in names.items():
        if short in values:
            made = made_series(name, values[short])
            more[name] = replace(made, sensor=replace(made.sensor, source="bmc"))
    return replace(run, series={**run.series, **more})


def outcomes(run: Recording, *names: str) -> list[Outcome]:
    judgement = judged(run)
    return [judgement.finding("coverage", name).outcome for name in names]


def test_a_return_that_does_not_move_by_one_step_is_not_proven() -> None:
    run = with_bmc(back=constant(41.0), pump=wavering(3000.0, 20.0))
    found = judged(run).finding("coverage", BACK)
    assert found.outcome is OPEN
    assert found.seen == (
        f"{BACK} is stuck, or too coarse: it stood at 41 for 43 min while the load went from idle to full"
    )
    assert "old reading" in found.likely
    assert "restart the BMC" in found.advice
    # The pump beside it wavers as a pump does: the BMC itself is alive.
    assert outcomes(run, PUMP) == [PASSED]
    assert judged(run).finding("pump", PUMP).outcome is PASSED


def test_a_return_that_moves_by_a_coarse_step_is_believed() -> None:
    assert outcomes(with_bmc(back=WARM), BACK) == [PASSED]


def test_power_that_is_the_same_idle_and_loaded_is_not_proven() -> None:
    assert outcomes(with_bmc(watts=constant(640.0), fan=wavering(5000.0, 60.0)), SUPPLIES, FAN) == [OPEN, PASSED]


@pytest.mark.parametrize("step", [1.0, 20.0, 60.0])
def test_a_fan_and_a_pump_at_a_constant_speed_are_well_regulated(step: float) -> None:
    """Coarse tachometers show no change for an hour: nothing is wrong with them while something else moves."""
    run = with_bmc(pump=constant(50 * step), fan=constant(80 * step), back=WARM, supply=constant(31.0))
    assert outcomes(run, PUMP, FAN, BACK, SUPPLY) == [PASSED] * 4
    assert judged(run).finding("pump", PUMP).outcome is PASSED


def test_constant_speeds_alone_prove_nothing_against_a_bmc() -> None:
    assert outcomes(with_bmc(pump=constant(3000.0), fan=constant(5000.0)), PUMP, FAN) == [PASSED] * 2


def test_a_bmc_of_which_nothing_moves_is_not_believed_in_anything() -> None:
    run = with_bmc(
        pump=constant(3000.0), fan=constant(5000.0), back=constant(41.0), supply=constant(31.0), leak=constant(0.0)
    )
    assert outcomes(run, PUMP, FAN, BACK, SUPPLY, LEAK) == [OPEN] * 5
    judgement: Judgement = judged(run)
    assert judgement.finding("pump", PUMP).seen.endswith(
        "while the load went from idle to full, and so did all that bmc gives"
    )
    assert judgement.finding("leak", LEAK).outcome is OPEN


def test_a_bmc_that_hangs_in_steady_is_found_out_by_the_cooldown() -> None:
    late = BASE + 400
    run = with_bmc(pump=constant(3000.0), back=frozen(WARM, late), supply=constant(31.0))
    found = judged(run).finding("coverage", PUMP)
    assert found.outcome is OPEN
    assert "while the load went from full to idle" in found.seen


@pytest.mark.parametrize("noise", [1.0, 20.0])
@pytest.mark.parametrize(
    "hang", [lambda values: frozen(values, BASE + 200), lambda values: frozen(values, BASE + 100, BASE + 250)]
)
def test_a_pump_that_wavered_and_wavers_no_more_is_stuck(hang: Callable[[Floats], Floats], noise: float) -> None:
    # What it froze at must be a level that it had before; that is so but for one chance in thirty.
    values = wavering(3000.0, noise)
    values[BASE + 99] = values[BASE + 199] = 3000.0
    run = with_bmc(pump=hang(values), back=WARM)
    found = judged(run).finding("pump", PUMP)
    assert found.outcome is OPEN
    assert "although it wavers all the time otherwise" in found.seen
    assert outcomes(run, PUMP, BACK) == [OPEN, PASSED]


def test_a_fan_that_goes_to_its_full_speed_and_stays_there_is_not_stuck() -> None:
    values = np.where(ON, 6000.0, wavering(3000.0, 30.0))
    values[BASE : BASE + 30] = np.linspace(3000.0, 6000.0, 30)
    assert outcomes(with_bmc(fan=values, back=WARM), FAN) == [PASSED]


def test_a_pump_that_wavers_seldom_may_stand_still_for_long() -> None:
    values = constant(3000.0)
    values[::40] = 3020.0
    assert outcomes(with_bmc(pump=frozen(values, BASE + 200, BASE + 280), back=WARM), PUMP) == [PASSED]


def test_without_a_change_of_load_nothing_is_held_against_a_constant() -> None:
    run = with_bmc(back=constant(41.0))
    cold = {name: replace(one, values=np.full(SIZE, 36.0)) for name, one in run.series.items() if name != BACK}
    assert (
        "stuck, or too coarse" not in judged(replace(run, series={**run.series, **cold})).finding("coverage", BACK).seen
    )


def test_a_building_is_not_expected_to_feel_one_machine() -> None:
    run = with_bmc(back=WARM)
    name = "facility_return.temperature_celsius"
    run = replace(run, series={**run.series, name: made_series(name, constant(23.0))})
    assert outcomes(run, name) == [PASSED]
