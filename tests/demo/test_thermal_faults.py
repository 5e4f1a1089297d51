"""A healthy machine is right by every check, and each fault is caught by the check that is meant for it."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.analysis import peak
from pytest_thermal.demo.faults import FAULTS
from pytest_thermal.demo.simulated import simulate
from pytest_thermal.demo.thermal_faults import THERMAL_FAULTS, thermal_fault
from tests.demo.many_benches import HEATED, judge, run

CARD = "gpu0.temperature_celsius"
CAUGHT: dict[str, set[str]] = {
    "pump_stop": {
        "pump pump0.speed_rpm",
        "throttling gpu0",
        "throttling gpu1",
        "fault:pump stopped cpu0.package.temperature_celsius",
        *(f"{check} {name}" for check in ("rise", "threshold") for name in HEATED),
    },
    "leak": {"leak leak0.detector_state"},
    "air": {f"{check} {name}" for check in ("rebound", "settled", "fault:air in the loop") for name in HEATED},
    "low_flow": {f"rise {name}" for name in HEATED},
    "degraded_contact": {f"rise {CARD}"},
    "fouled_radiator": {f"rise {name}" for name in HEATED},
    "warm_supply": {
        *(f"threshold {name}" for name in HEATED if name.startswith("gpu")),
        *(f"fault:supply too warm {name}" for name in HEATED),
    },
    "throttling": {"throttling gpu0"},
    "sensor_stuck": {f"stuck {CARD}", f"fault:sensor stuck {CARD}"},
    "sensor_dropout": {f"coverage {CARD}"},
    "spike": {f"spikes {CARD}", "spikes cpu0.package.temperature_celsius"},
}
ALONE = {"leak", "throttling", "sensor_stuck", "sensor_dropout", "spike"}
"""Faults of which nothing else is to be seen."""


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_machine_passes_every_check(seed: int) -> None:
    assert judge(run(seed=seed)).against == frozenset()


def test_idle_and_loaded_it_is_as_warm_as_such_a_machine_is() -> None:
    figures = judge(run()).figures
    idle = {name: found.baseline.value for name, found in figures.items()}
    assert idle == pytest.approx(dict.fromkeys(HEATED, 33.0) | {HEATED[0]: 35.5}, abs=1.0)
    assert all((found.peak.value or 99.0) < 72.0 for found in figures.values())


def test_every_fault_has_a_check_that_is_meant_for_it() -> None:
    assert set(CAUGHT) == set(THERMAL_FAULTS)


@pytest.mark.parametrize("fault", THERMAL_FAULTS)
def test_a_fault_is_caught(fault: str) -> None:
    against = judge(run(fault)).against
    assert against >= CAUGHT[fault]
    assert against == CAUGHT[fault] or fault not in ALONE


def test_bad_contact_is_the_one_cards() -> None:
    against = judge(run("degraded_contact")).against
    assert {one.split(" ")[1] for one in against} == {CARD}


def test_a_spike_is_not_the_peak() -> None:
    seen = run("spike")
    figures = judge(seen).figures[CARD]
    assert peak(seen.series[CARD]).value == pytest.approx(98.0, abs=2.0)
    assert figures.peak.value == pytest.approx(68.0, abs=2.0)
    assert figures.peak.detail["rejected"] == 1


def test_a_dropout_is_missing_and_no_number() -> None:
    values = run("sensor_dropout").series[CARD].values
    assert 0.1 < np.isnan(values).mean() < 0.4
    assert float(np.nanmin(values)) > 30.0


def test_a_fault_shows_when_it_begins_and_not_before() -> None:
    healthy, stopped = run(), run("pump_stop")
    for name in (*HEATED, "pump0.speed_rpm", "coolant.flow_liters_per_minute"):
        before = healthy.phases["ramp"].start_seconds + 340.0
        start = healthy.phases["baseline"].start_seconds
        assert np.array_equal(
            healthy.series[name].between(start, before).values, stopped.series[name].between(start, before).values
        )
    assert stopped.series["pump0.speed_rpm"].during(stopped.phases["cooldown"]).values.max() == 0.0


def test_the_same_seed_gives_the_same_run() -> None:
    script = [(60.0, {}), (60.0, {"gpu0": 1.0})]
    one, same, other = (simulate(script, fault="air", seed=seed) for seed in (3, 3, 4))
    assert [track.values for track in one] == [track.values for track in same]
    assert [track.values for track in one] != [track.values for track in other]


def test_readings_come_at_their_period_until_the_end() -> None:
    tracks = simulate([(60.0, {}), (30.0, {"gpu0": 1.0})], period_seconds=7.5)
    assert tracks[0].times == [7.5 * tick for tick in range(12)]
    use = next(track for track in tracks if track.sensor.id == "gpu0.utilization_percent")
    assert max(use.values[:9]) < 5.0
    assert min(use.values[9:]) > 95.0


def test_no_thermal_fault_is_called_as_one_of_the_gateway() -> None:
    assert not set(THERMAL_FAULTS) & set(FAULTS)
    assert all(THERMAL_FAULTS.values())


def test_an_unknown_fault_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"'pump-stop'\ntry: one of pump_stop, leak"):
        thermal_fault("pump-stop")
