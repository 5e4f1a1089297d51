from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.analysis import Answer, SettlingRate, analyse_temperature
from tests.analysis.many_runs import FAULTS, MOST_RISE, healthy, some_loop, some_plan, verdict
from tests.analysis.signals import Plan, TwoModes, counting, loop_run, quantised, series, ticks, white


def test_healthy_runs_never_fail_and_rarely_stay_open() -> None:
    rng = np.random.default_rng(131)
    verdicts = []
    for _ in range(60):
        plan = some_plan(rng)
        verdicts.append(verdict(healthy(rng, plan, some_loop(rng)), plan))
    assert [why for said, why in verdicts if said == "failed"] == []
    assert sum(said == "open" for said, _ in verdicts) <= 9  # gaps and losses in a short phase


@pytest.mark.parametrize("fault", FAULTS)
def test_no_faulty_run_passes(fault: str) -> None:
    rng = np.random.default_rng(132)
    for _ in range(6):
        plan = some_plan(rng)
        said, why = verdict(FAULTS[fault](rng, plan, some_loop(rng)), plan)
        assert said != "passed"
        assert why


def test_all_figures_of_a_known_run() -> None:
    plan = Plan()
    modes = TwoModes()
    seen = quantised(modes.on(plan) + white(np.random.default_rng(133), plan.times.size, 0.3), 1.0)
    seen[2000] += 40
    found = analyse_temperature(series(plan.times, seen), tuple(plan.phases.values()))
    assert found.rise.value == pytest.approx(modes.rise, abs=0.5)
    assert found.baseline.value == pytest.approx(modes.baseline, abs=0.3)
    assert found.steady.value == pytest.approx(modes.baseline + modes.rise, abs=0.3)
    assert found.peak.value == pytest.approx(modes.baseline + modes.rise + 1, abs=1.01)
    assert found.peak.detail["rejected"] == 1
    assert found.health.spikes.value == 1
    assert found.clean.present.sum() == plan.times.size - 1
    assert found.settled is not None
    assert found.settled.settled is Answer.YES
    assert found.baseline_settled is not None
    assert found.baseline_settled.settled is Answer.YES
    assert found.slow is not None
    assert found.slow.value == pytest.approx(modes.slow_seconds, rel=0.1)
    assert found.rebound is not None
    assert found.rebound.found is Answer.NO
    assert set(found.coverage) == {"baseline", "ramp", "steady", "cooldown"}
    assert all(covered.complete is Answer.YES for covered in found.coverage.values())


def test_every_figure_is_a_number_or_says_why_not() -> None:
    plan = Plan(steady=900.0, period=5.0)
    run = loop_run(plan, np.random.default_rng(134))
    figures = analyse_temperature(run.temperature, run.phases, power=run.power).figures()
    assert len(figures) > 25
    assert all((figure.value is None) == bool(figure.reason) for figure in figures)
    assert all(figure.unit for figure in figures)


@pytest.mark.parametrize("names", [(), ("baseline",), ("steady",), ("cooldown",), ("ramp", "steady")])
def test_a_run_that_lacks_phases_has_the_figures_of_those_it_has(names: tuple[str, ...]) -> None:
    plan = Plan(steady=900.0, period=5.0)
    run = loop_run(plan, np.random.default_rng(135))
    found = analyse_temperature(run.temperature, [phase for phase in run.phases if phase.name in names])
    assert (found.baseline.value is not None) == ("baseline" in names)
    assert (found.steady.value is not None) == ("steady" in names)
    assert (found.rebound is not None) == ("cooldown" in names)
    assert (found.settled is not None) == ("steady" in names)
    assert found.rise.value is None
    assert found.rise.reason.startswith("the run has no")
    assert found.peak.value is not None


@pytest.mark.parametrize("count", [0, 1, 2, 5, 50])
def test_a_few_readings_or_none_raise_nothing(count: int) -> None:
    phases = tuple(Plan().phases.values())
    for values in (np.full(count, 40.0), np.full(count, np.nan), 40 + counting(count) % 2.0):
        times = ticks(count, 40.0)
        found = analyse_temperature(series(times, values, period=40.0), phases)
        assert len(found.figures()) > 25
        assert found.settled is not None
        assert found.settled.settled is not Answer.YES or count == 50


def test_phases_of_no_length_raise_nothing() -> None:
    run = loop_run(Plan(steady=900.0), np.random.default_rng(136))
    empty = tuple(replace(phase, end_seconds=phase.start_seconds) for phase in run.phases)
    found = analyse_temperature(run.temperature, empty)
    assert found.rise.value is None
    assert found.coverage["steady"].complete is Answer.NO


def test_a_demo_that_runs_sixty_times_as_fast_is_judged_by_its_own_rate() -> None:
    plan = Plan(baseline=10.0, ramp=5.0, steady=35.0, cooldown=15.0, period=0.1)
    modes = TwoModes(fast_seconds=0.3, slow_seconds=4.0)
    seen = quantised(modes.on(plan) + white(np.random.default_rng(137), plan.times.size, 0.1), 0.1)
    quick = SettlingRate(name="demo", kelvin=1.0, seconds=5.0, origin="sixty times as fast as 1 K in 5 min")
    found = analyse_temperature(series(plan.times, seen, period=0.1), tuple(plan.phases.values()), rate=quick)
    assert found.settled is not None
    assert found.settled.settled is Answer.YES
    assert found.slow is not None
    assert found.slow.value == pytest.approx(4.0, rel=0.1)
    assert found.rise.value is not None
    # The whole phase stands for steady where it is shorter than five minutes, its beginning included.
    assert found.rise.value == pytest.approx(modes.rise, abs=0.8)
    assert found.rise.value < MOST_RISE


@pytest.mark.parametrize("seed", range(3))
def test_what_goes_on_rising_after_the_slow_mode_is_over_is_no_part_of_it(seed: int) -> None:
    """3.6 °C of a mode of 100 min are still to come, and no curve shows it but by its slope."""
    plan = Plan()
    values = TwoModes(fast_seconds=5.0, slow_rise=10.0, slow_seconds=150.0).on(plan)
    values += TwoModes(baseline=0.0, fast_rise=0.0, slow_rise=6.7, slow_seconds=6000.0).on(plan)
    noisy = quantised(values + white(np.random.default_rng(seed), values.size, 0.3), 1.0)
    found = analyse_temperature(series(plan.times, noisy), tuple(plan.phases.values()))
    assert found.settled is not None
    assert found.settled.settled is not Answer.YES
