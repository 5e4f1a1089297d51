from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_thermal.analysis.drift import FAILS_AT, RunFacts, drift, not_comparable
from pytest_thermal.model.series import Figure

FACTS = RunFacts(
    bench="rack7",
    load={"mode": "mixed", "inference_ratio": 0.6, "concurrent_requests": 8},
    power_limits={"gpu0": 700.0},
    sensors=frozenset({"GPU-1 gpu0.temperature_celsius"}),
    steady_seconds=3600.0,
)


def celsius(value: float, uncertainty: float = 0.2) -> Figure:
    return Figure(name="rise", value=value, unit="celsius", uncertainty=uncertainty)


def per_watt(value: float, watts: float = 600.0, reference: str = "coolant supply") -> Figure:
    return Figure(
        name="resistance",
        value=value,
        unit="celsius/watt",
        uncertainty=0.0005,
        detail={"reference": reference, "watts": watts},
    )


def test_runs_of_one_kind_are_comparable() -> None:
    assert not_comparable(FACTS, replace(FACTS, power_limits={"gpu0": 701.0}, steady_seconds=3700.0)) == ()


@pytest.mark.parametrize(
    "then, said",
    [
        (replace(FACTS, bench="rack8"), "another bench: rack8, now rack7"),
        (replace(FACTS, load={**FACTS.load, "mode": "gpu"}), "another load: mode was gpu, now mixed"),
        (
            replace(FACTS, load={"mode": "mixed", "inference_ratio": 0.6}),
            "another load: concurrent_requests was not set, now 8",
        ),
        (replace(FACTS, power_limits={"gpu0": 500.0}), "another power limit of gpu0: was 500 W, now 700 W"),
        (replace(FACTS, power_limits={}), "another power limit of gpu0: was not known, now 700 W"),
        (replace(FACTS, sensors=frozenset()), "another set of sensors: 1 new (GPU-1 gpu0.temperature_celsius)"),
        (replace(FACTS, steady_seconds=600.0), "another length of steady: was 600 s, now 3600 s"),
    ],
)
def test_each_difference_that_heats_by_itself_is_named(then: RunFacts, said: str) -> None:
    assert not_comparable(FACTS, then) == (said,)


def test_all_differences_are_named() -> None:
    assert len(not_comparable(FACTS, RunFacts(bench="other", load={}))) == 7


def test_by_rise_where_there_is_no_resistance() -> None:
    found = drift(celsius(38.0, 0.3), celsius(31.0, 0.4))
    assert found.value == 7.0
    assert found.value >= FAILS_AT
    assert found.uncertainty == pytest.approx(0.5)
    assert found.detail["figure"] == "rise"


def test_by_resistance_where_both_have_it_whatever_the_power() -> None:
    found = drift(celsius(30.0), celsius(36.0), resistance=per_watt(0.060), earlier_resistance=per_watt(0.050, 700.0))
    assert found.value == pytest.approx(6.0)
    assert found.detail["figure"] == "resistance"
    assert found.uncertainty == pytest.approx(0.0005 * 2**0.5 * 600)


def test_resistances_against_different_things_are_not_compared() -> None:
    found = drift(
        celsius(33.0), celsius(31.0), resistance=per_watt(0.06), earlier_resistance=per_watt(0.05, reference="ambient")
    )
    assert found.value == 2.0
    assert found.detail["figure"] == "rise"


def test_one_resistance_alone_does_not_count() -> None:
    missing = Figure.missing("resistance", "celsius/watt", "power is not measured")
    assert drift(celsius(33.0), celsius(31.0), resistance=per_watt(0.06), earlier_resistance=missing).value == 2.0


def test_without_either_there_is_no_drift() -> None:
    missing = Figure.missing("rise", "celsius", "no baseline")
    assert drift(celsius(33.0), missing).reason == "in the earlier run: no baseline"
    assert drift(missing, celsius(33.0)).reason == "no baseline"
