from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_thermal.analysis.levels import level
from pytest_thermal.analysis.resistance import resistance
from pytest_thermal.model.series import Figure
from tests.analysis.signals import HEALTHY, Plan, loop_run


def figure(value: float, uncertainty: float = 0.0, unit: str = "celsius") -> Figure:
    return Figure(name="level", value=value, unit=unit, uncertainty=uncertainty)


HOT, WATTS = figure(62.0, 0.3), figure(600.0, 6.0, "watts")
COOLANT, ROOM, IDLE, IDLE_WATTS = figure(32.0, 0.4), figure(23.0), figure(29.0), figure(50.0, 0.0, "watts")
ABSENT = Figure.missing("coolant_supply", "celsius", "not measured")


def test_the_coolant_supply_comes_first_then_the_room_then_the_baseline() -> None:
    everything = resistance(HOT, WATTS, coolant_supply=COOLANT, ambient=ROOM, baseline=IDLE, baseline_power=IDLE_WATTS)
    assert everything.value == pytest.approx(30 / 600)
    assert everything.detail["reference"] == "coolant supply"
    room = resistance(HOT, WATTS, coolant_supply=ABSENT, ambient=ROOM, baseline=IDLE)
    assert room.value == pytest.approx(39 / 600)
    assert room.detail["reference"] == "ambient"
    baseline = resistance(HOT, WATTS, baseline=IDLE, baseline_power=IDLE_WATTS)
    assert baseline.value == pytest.approx(33 / 550)
    assert baseline.detail["reference"] == "baseline"


def test_the_baseline_without_its_power_is_told() -> None:
    found = resistance(HOT, WATTS, baseline=IDLE)
    assert found.value == pytest.approx(33 / 600)
    assert found.detail["idle_power"] is None


def test_what_an_earlier_load_left_is_no_resistance() -> None:
    found = resistance(
        HOT, figure(60.0, 0.0, "watts"), coolant_supply=COOLANT, baseline=IDLE, baseline_power=IDLE_WATTS
    )
    assert found.value is None
    assert found.reason == "60 W in steady are no load, as it draws 50 W at idle"


def test_uncertainty_by_the_law_of_propagation() -> None:
    found = resistance(HOT, WATTS, coolant_supply=COOLANT)
    assert found.uncertainty == pytest.approx(math.hypot(0.5 / 600, 30 * 6 / 600**2))
    worse = resistance(HOT, WATTS, coolant_supply=COOLANT, power_accuracy=0.05)
    assert worse.uncertainty == pytest.approx(math.sqrt((0.5 / 600) ** 2 + (0.05 * 0.05) ** 2 + (30 * 6 / 600**2) ** 2))


@pytest.mark.parametrize(
    "hot, watts, baseline, said",
    [
        (Figure.missing("steady", "celsius", "2 readings"), WATTS, IDLE, "2 readings"),
        (HOT, Figure.missing("power", "watts", "not measured"), IDLE, "power: not measured"),
        (HOT, WATTS, None, "neither"),
        (HOT, figure(3.0, 0.0, "watts"), IDLE, "3.0 W"),
    ],
)
def test_what_cannot_be_divided_has_a_reason(hot: Figure, watts: Figure, baseline: Figure | None, said: str) -> None:
    found = resistance(hot, watts, baseline=baseline)
    assert found.value is None
    assert said in found.reason


def test_the_resistances_of_a_known_loop_are_found() -> None:
    rng = np.random.default_rng(61)
    plan = Plan()
    run = loop_run(plan, rng, resolution=0.1)
    steady, baseline = plan.phases["steady"], plan.phases["baseline"]
    hot, power = level(run.temperature, steady), level(run.power, steady)
    to_coolant = resistance(hot, power, coolant_supply=level(run.coolant, steady))
    whole = resistance(hot, power, baseline=level(run.temperature, baseline), baseline_power=level(run.power, baseline))
    assert to_coolant.value == pytest.approx(HEALTHY.contact + HEALTHY.transfer, rel=0.01)
    assert whole.value == pytest.approx(HEALTHY.contact + HEALTHY.transfer + HEALTHY.radiator, rel=0.01)
    assert to_coolant.uncertainty is not None
    assert to_coolant.uncertainty < 0.02 * (HEALTHY.contact + HEALTHY.transfer)
