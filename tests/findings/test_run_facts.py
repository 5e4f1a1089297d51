from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pytest_thermal.analysis import not_comparable
from pytest_thermal.bench import Monitor
from pytest_thermal.demo.simulated import SimulatedMachine
from pytest_thermal.findings import is_simulated, planned_loads, time_scale_of
from pytest_thermal.findings.run_facts import (
    SIMULATED_IDENTITY,
    comparable_facts,
    is_to_be_loaded,
    planned_seconds,
    recorded_thresholds,
    serves_itself,
)
from tests.findings.recordings import FACTS, WATTS, healthy, with_limits


@pytest.mark.parametrize(
    "facts, loads",
    [
        ({"load": {"mode": "cpu"}}, {"cpu"}),
        ({"load": {"mode": "gpu"}}, {"accelerator"}),
        ({"load": {"mode": "inference"}}, {"inference"}),
        ({"load": {"mode": "mixed"}}, {"cpu", "inference"}),
        ({"load": {"mode": "cpu"}, "works": [{"kind": "cpu"}, {"kind": "accelerator"}]}, {"cpu"}),
        ({"works": [{"kind": "accelerator"}]}, {"accelerator"}),
        ({}, None),
        ({"load": "much"}, None),
        ({"load": {"mode": "odd"}, "works": None}, None),
    ],
)
def test_what_a_run_was_to_load(facts: dict[str, object], loads: set[str] | None) -> None:
    assert planned_loads(facts) == loads


def test_which_devices_a_load_reaches() -> None:
    assert is_to_be_loaded("cpu0", {"cpu"})
    assert not is_to_be_loaded("cpu0", {"inference"})
    assert is_to_be_loaded("npu3", {"inference"})
    assert is_to_be_loaded("gpu0", {"accelerator"})
    assert not is_to_be_loaded("gpu0", {"cpu"})
    assert is_to_be_loaded("gpu0", None)


def test_what_is_not_said_is_not_known() -> None:
    assert planned_seconds({}, "steady") is None
    assert planned_seconds({"plan": {"seconds": {"steady": 60}}}, "steady") == 60.0
    assert time_scale_of({}) == 1.0
    assert time_scale_of({"time_scale": 0}) == 1.0
    assert time_scale_of({"time_scale": 20}) == 20.0
    assert not is_simulated({})
    assert not serves_itself({"gateways": {"one": "not a url"}})
    assert not serves_itself({})


def works(*tools: str) -> dict[str, object]:
    return {**FACTS, "works": [{"kind": "cpu", "tool": tool} for tool in tools]}


def test_another_burner_is_another_load_and_another_version_is_not() -> None:
    with_ng = comparable_facts(replace(healthy(), facts=works("stress-ng 0.17.6 matrixprod")))
    newer = comparable_facts(replace(healthy(), facts=works("stress-ng 0.18 matrixprod")))
    built_in = comparable_facts(replace(healthy(), facts=works("built-in burner (numpy)")))
    assert not_comparable(with_ng, newer) == ()
    assert not_comparable(built_in, with_ng) == (
        "another load: cpu tool was stress-ng matrixprod, now built-in burner (numpy)",
    )


def test_what_only_the_limit_phase_started_makes_no_other_run() -> None:
    more = {**FACTS, "works": [{"kind": "cpu", "tool": "x"}, {"kind": "accelerator", "tool": "gpu_burn"}]}
    less = {**FACTS, "works": [{"kind": "cpu", "tool": "x"}]}
    runs = [comparable_facts(replace(healthy(), facts=facts)) for facts in (more, less)]
    assert not_comparable(*runs) == ()


def test_power_limits_and_the_simulation_are_part_of_a_run() -> None:
    capped = comparable_facts(with_limits(healthy(), WATTS, cap=500.0))
    assert capped.power_limits == {"gpu0": 500.0}
    simulated = comparable_facts(replace(healthy(), facts={**FACTS, "simulated": True}))
    assert not_comparable(simulated, comparable_facts(healthy())) == ("another bench: lab-7, now lab-7 (simulated)",)


@pytest.mark.parametrize(
    "facts, simulated",
    [
        ({}, False),
        (FACTS, False),
        ({"simulated": True}, True),
        ({"simulated": False, "time_scale": 20.0}, True),  # no real loop is that fast
        ({"simulated": False, "sensors": [{"identity": "GPU-1"}]}, False),
        ({"sensors": [{"identity": "GPU-1"}, {"identity": "simulated-gpu0"}]}, True),
        ({"sensors": "?"}, False),
        ({"sensors": [None, {}]}, False),
    ],
)
def test_a_run_of_the_demo_bench_is_known_by_more_than_one_word(facts: Mapping[str, object], simulated: bool) -> None:
    assert is_simulated(facts) is simulated


def test_the_demo_benchs_devices_say_so_by_their_identity() -> None:
    assert all(one.identity.startswith(SIMULATED_IDENTITY) for one in SimulatedMachine().sensors)


def test_thresholds_are_those_that_the_run_was_made_with() -> None:
    facts = {
        "monitor": {"alert_threshold_gpu_celsius": 71.0},
        "monitor_origins": {"monitor.alert_threshold_gpu_celsius": "config.toml [thermal] alert_threshold_gpu"},
    }
    monitor, origin = recorded_thresholds(facts)
    assert monitor.alert_threshold_gpu_celsius == 71.0
    assert origin("monitor.alert_threshold_gpu_celsius") == "config.toml [thermal] alert_threshold_gpu"
    assert origin("monitor.alert_threshold_cpu_celsius") == "default"


@pytest.mark.parametrize("facts", [{}, {"monitor": {"of_another_version": 1}, "monitor_origins": "?"}])
def test_a_run_that_does_not_say_its_thresholds_has_the_defaults(facts: dict[str, object]) -> None:
    monitor, origin = recorded_thresholds(facts)
    assert monitor == Monitor()
    assert origin("monitor.alert_threshold_gpu_celsius") == "default"
