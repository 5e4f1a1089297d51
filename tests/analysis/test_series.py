from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from pytest_thermal.model.series import Figure, Phase, Series
from tests.analysis.signals import counting, sensor, series

TIMES = counting(5)
VALUES = np.array([30.0, np.nan, 31.0, 32.0, 33.0])


def test_a_reading_on_the_border_belongs_to_the_later_phase_only() -> None:
    whole = series(TIMES, VALUES)
    first = Phase(name="baseline", start_seconds=0.0, end_seconds=2.0)
    second = Phase(name="ramp", start_seconds=2.0, end_seconds=4.0)
    assert whole.during(first).time_seconds.tolist() == [0.0, 1.0]
    assert whole.during(second).time_seconds.tolist() == [2.0, 3.0]


def test_a_part_keeps_sensor_period_and_resolution() -> None:
    whole = Series(
        sensor=sensor("npu1.temperature_celsius"), time_seconds=TIMES, values=VALUES, period_seconds=2.0, resolution=0.5
    )
    part = whole.between(1.0, 3.0)
    assert (part.sensor.id, part.period_seconds, part.resolution) == ("npu1.temperature_celsius", 2.0, 0.5)
    assert len(part) == 2


def test_arrays_cannot_be_written_through_a_series_but_the_callers_still_can() -> None:
    mine = TIMES.copy()
    whole = series(mine, VALUES)
    with pytest.raises(ValueError, match="read-only"):
        whole.time_seconds[0] = 1.0
    mine[0] = -1.0
    assert mine[0] == -1.0


def test_rejected_readings_become_missing_and_the_original_stays() -> None:
    whole = series(TIMES, VALUES)
    cleaned = whole.without(np.array([True, False, False, False, True]))
    assert cleaned.present.tolist() == [False, False, True, True, False]
    assert whole.present.tolist() == [True, False, True, True, True]


@pytest.mark.parametrize(
    "times, values, period, resolution, said",
    [
        (TIMES, VALUES[:-1], 1.0, None, "both must be"),
        (TIMES[::-1], VALUES, 1.0, None, "strictly increasing"),
        (np.zeros(5), VALUES, 1.0, None, "strictly increasing"),
        (np.array([0.0, 1.0, 2.0, 3.0, np.nan]), VALUES, 1.0, None, "finite"),
        (TIMES, np.array([1.0, 2.0, np.inf, 3.0, 4.0]), 1.0, None, "never infinite"),
        (TIMES, VALUES, 0.0, None, "period"),
        (TIMES, VALUES, 1.0, 0.0, "resolution"),
    ],
)
def test_what_is_no_series_is_refused_with_the_sensors_name(
    times: np.ndarray[tuple[int], np.dtype[np.float64]],
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
    period: float,
    resolution: float | None,
    said: str,
) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        Series(sensor=sensor(), time_seconds=times, values=values, period_seconds=period, resolution=resolution)
    assert str(refused.value).startswith("gpu0.temperature_celsius")


def test_a_phase_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(ValueError, match="ends before"):
        Phase(name="steady", start_seconds=2.0, end_seconds=1.0)


@pytest.mark.parametrize(
    "value, uncertainty, reason",
    [(None, None, ""), (float("nan"), None, ""), (float("inf"), None, ""), (1.0, -0.1, ""), (1.0, float("nan"), "")],
)
def test_a_figure_is_a_number_or_a_reason(value: float | None, uncertainty: float | None, reason: str) -> None:
    with pytest.raises(ValueError, match="rise"):
        Figure(name="rise", value=value, unit="celsius", uncertainty=uncertainty, reason=reason)


def test_a_missing_figure_keeps_what_is_known() -> None:
    figure = Figure.missing("slow", "seconds", "not white", at_most_seconds=400.0)
    assert figure.value is None
    assert figure.detail == {"at_most_seconds": 400.0}


def test_the_model_room_does_not_need_numpy() -> None:
    code = "import sys; sys.modules['numpy'] = None; import pytest_thermal.model"
    subprocess.run([sys.executable, "-c", code], check=True)
