"""What is packed comes out again, as near as was promised."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.reporting.run_page.packing import coarser, pack_times, pack_values
from tests.reporting.pages import unpacked_times, unpacked_values


def through(values: list[float], finest: float) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float64]], float]:
    packed = pack_values(np.array(values), finest=finest)
    told = {"packed": "v", "offset": packed.offset, "step": packed.step}
    return unpacked_values(told, {"v": packed.text}), packed.step


@pytest.mark.parametrize(
    "values, finest",
    [
        ([35.25, 35.5, 36.0, 35.25], 0.01),
        ([-40.0, 120.0, -273.15], 0.01),
        ([0.0, 0.0], 1.0),
        ([1e12, 2e12, 3.3e12], 0.001),
        ([0.0, 65534.0, 65535.0, 1.0], 1.0),
        ([7.0], 0.1),
    ],
)
def test_each_value_comes_out_within_half_a_step(values: list[float], finest: float) -> None:
    found, step = through(values, finest)
    assert np.abs(found - values).max() <= 0.5001 * step
    assert step == finest or step <= 2.5 * (max(values) - min(values)) / 65534


def test_a_missing_value_comes_out_missing_and_moves_no_other() -> None:
    values = [np.nan, 20.0, np.nan, np.nan, 21.0, 65.0, np.nan]
    found, _ = through(values, 0.01)
    np.testing.assert_allclose(found, values, atol=0.006)
    assert np.isnan(found).tolist() == np.isnan(values).tolist()


@pytest.mark.parametrize("values", [[], [np.nan, np.nan]])
def test_nothing_at_all_can_be_packed(values: list[float]) -> None:
    found, _ = through(values, 0.01)
    assert np.isnan(found).all()
    assert found.size == len(values)


def test_times_come_out_to_the_millisecond() -> None:
    seconds = np.cumsum(np.random.default_rng(1).uniform(0.001, 90_000.0, 3000))
    base = {"packed": "t", "count": seconds.size}
    np.testing.assert_allclose(unpacked_times(base, {"t": pack_times(seconds)}), seconds, rtol=0, atol=0.000501)


def test_steps_are_those_that_people_count_in() -> None:
    assert [coarser(0.01, least) for least in (0.0, 0.011, 0.03, 0.07, 1.0)] == pytest.approx(
        [0.01, 0.02, 0.05, 0.1, 1.0]
    )
