from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.findings import stretch
from pytest_thermal.model import Missing
from pytest_thermal.recording import Event, MissingStretch, Timing
from tests.findings.recordings import GPU, HOT, PLAN, healthy


def test_everything_in_time_is_stretched_about_the_first_sample() -> None:
    start = float(PLAN.times[0])
    run = healthy()
    run = replace(
        run,
        missing=(MissingStretch(time_seconds=start + 10, sensor_id=GPU, reason=Missing.TIMEOUT, detail=""),),
        events=(Event(time_seconds=start + 20, kind="load", detail={}),),
        timing={
            "invented": Timing(
                source="invented",
                time_seconds=PLAN.times,
                lateness_ms=np.full(PLAN.times.size, 2.0),
                read_ms=np.full(PLAN.times.size, 3.0),
                period_seconds=5.0,
                reason="",
                missed=0,
                priority="",
            )
        },
    )
    long = stretch(run, 20.0)
    assert long.series[GPU].time_seconds[0] == start
    assert np.diff(long.series[GPU].time_seconds) == pytest.approx(100.0)
    assert long.series[GPU].period_seconds == 100.0
    assert (long.series[GPU].values == run.series[GPU].values).all()
    assert (long.series[HOT].values == run.series[HOT].values).all()
    assert long.phases[1].start_seconds == start + 20 * 300
    assert long.phases[1].duration_seconds == pytest.approx(20 * 120)
    assert long.missing[0].time_seconds == start + 200
    assert long.events[0].time_seconds == start + 400
    assert long.requests is not None
    assert run.requests is not None
    assert long.requests.latency_seconds[0] == 40.0
    assert long.requests.start_seconds[0] == pytest.approx(start + 20 * (run.requests.start_seconds[0] - start))
    assert long.timing["invented"].period_seconds == 100.0
    assert long.timing["invented"].lateness_ms[0] == 40.0
    assert stretch(long, 1 / 20).series[GPU].time_seconds == pytest.approx(run.series[GPU].time_seconds)


def test_a_real_benchs_time_is_left_alone() -> None:
    run = healthy()
    assert stretch(run, 1.0) is run
    empty = replace(run, series={})
    assert stretch(empty, 20.0) is empty


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_time_runs_forward(scale: float) -> None:
    with pytest.raises(ValueError, match="more than zero"):
        stretch(healthy(), scale)
