"""When a device slowed itself down, and what is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.analysis import ThrottleKind
from pytest_thermal.model import Missing
from pytest_thermal.model.series import Series
from pytest_thermal.recording import MissingStretch, Recording
from pytest_thermal.reporting.run_page.spans import Span, fewer, gaps, throttled
from tests.findings.recordings import GPU, PLAN, changed, healthy, made_series
from tests.reporting.pages import GAP, faulty


def of(name: str, values: list[float], period: float = 5.0) -> Recording:
    one = made_series(name, np.zeros(PLAN.times.size))
    series = Series(
        sensor=one.sensor,
        time_seconds=np.arange(len(values), dtype=np.float64) * period,
        values=np.array(values, dtype=np.float64),
        period_seconds=period,
    )
    return replace(healthy(), series={name: series}, missing=(), requests=None, phases=())


def test_a_counter_that_grows_is_a_ribbon_from_reading_to_reading() -> None:
    found = throttled(of("gpu0.throttle.thermal_milliseconds", [0, 0, 100, 300, 300, 300, 400]))
    assert [(s.start_seconds, s.end_seconds) for s in found["gpu0"][ThrottleKind.THERMAL]] == [(5, 15), (25, 30)]


def test_a_counter_that_began_again_counts_from_zero() -> None:
    found = throttled(of("gpu0.throttle.thermal_milliseconds", [500, 500, 0, 0, 20]))
    assert [(s.start_seconds, s.end_seconds) for s in found["gpu0"][ThrottleKind.THERMAL]] == [(15, 20)]


def test_a_register_of_flags_is_taken_apart() -> None:
    found = throttled(of("gpu0.throttle_reasons_bits", [0, 0x40, 0x40, 0x4, 0]))
    thermal, power = found["gpu0"][ThrottleKind.THERMAL], found["gpu0"][ThrottleKind.POWER]
    assert [(s.start_seconds, s.end_seconds) for s in thermal] == [(5, 15)]
    assert [(s.start_seconds, s.end_seconds) for s in power] == [(15, 20)]


def test_a_device_that_never_slowed_down_has_no_ribbon() -> None:
    assert throttled(healthy()) == {}


def test_missing_readings_are_told_with_their_reason() -> None:
    (found,) = gaps(faulty())
    assert found.sensor_id == GPU
    (span,) = found.spans
    assert span.start_seconds - PLAN.load_on == pytest.approx(GAP[0], abs=PLAN.period)
    assert span.end_seconds - PLAN.load_on == pytest.approx(GAP[1], abs=PLAN.period)
    assert found.reasons == {"timeout": 1}
    assert found.due == PLAN.times.size


def test_a_reason_from_before_the_last_reading_is_not_this_gaps() -> None:
    run = of("gpu0.temperature_celsius", [1, np.nan, 2, 3, np.nan, 4])
    told = MissingStretch(time_seconds=5, sensor_id="gpu0.temperature_celsius", reason=Missing.TIMEOUT, detail="")
    (found,) = gaps(replace(run, missing=(told,)))
    assert found.reasons == {"timeout": 1, "": 1}


def test_rows_that_are_not_there_and_a_sensor_that_ends_early_are_missing() -> None:
    run = of("gpu0.temperature_celsius", [1.0] * 20)
    one = run.series["gpu0.temperature_celsius"]
    kept = np.array([0, 1, 2, 5, 6, 7])
    short = replace(one, time_seconds=one.time_seconds[kept], values=one.values[kept])
    other = replace(one, sensor=replace(one.sensor, id="gpu1.temperature_celsius", device="gpu1"))
    (found,) = gaps(replace(run, series={"gpu0.temperature_celsius": short, "gpu1.temperature_celsius": other}))
    assert [(s.start_seconds, s.end_seconds) for s in found.spans] == [(15, 25), (40, 95)]


def test_every_second_reading_missing_makes_no_endless_page() -> None:
    (found,) = gaps(of("gpu0.temperature_celsius", [1.0, np.nan] * 3000))
    assert len(found.spans) <= 400
    assert sum(found.reasons.values()) == 3000
    assert found.spans[0].start_seconds == 5
    assert found.spans[-1].end_seconds == 6000 * 5


def test_spans_that_touch_are_one_with_both_reasons() -> None:
    spans = [Span(start_seconds=5, end_seconds=9, why="b"), Span(start_seconds=1, end_seconds=5, why="a")]
    assert fewer(spans) == (Span(start_seconds=1, end_seconds=9, why="a, b"),)


def test_a_healthy_run_misses_nothing() -> None:
    assert gaps(changed(healthy(), GPU, lambda values, _: values)) == []
