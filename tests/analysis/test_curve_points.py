from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.analysis.curve_points import CurvePoints, binned, crossings
from tests.analysis.signals import Floats, counting, quantised, white

SECONDS = counting(1800)


def rising(seconds: Floats) -> Floats:
    return np.asarray(60 - 25 * np.exp(-seconds / 300))


def errors(points: CurvePoints) -> Floats:
    return points.values - rising(points.seconds)


def test_bins_widen_and_keep_all_readings() -> None:
    points = binned(SECONDS, rising(SECONDS), narrowest=1.0, resolution=None, noise=0.0)
    assert points.weights.sum() == 1800
    assert points.seconds[0] == 0.0
    assert 60 < points.seconds.size < 200
    assert points.widths[-1] == pytest.approx(0.04 * 1800, rel=0.2)
    assert np.abs(errors(points)).max() < 0.05


def test_a_hole_makes_no_bin() -> None:
    there = (SECONDS < 200) | (SECONDS > 900)
    points = binned(SECONDS[there], rising(SECONDS[there]), narrowest=1.0, resolution=None, noise=0.0)
    assert not ((points.seconds > 205) & (points.seconds < 880)).any()
    assert points.weights.sum() == np.count_nonzero(there)


@pytest.mark.parametrize("noise", [0.25, 0.3, 0.4])
def test_the_ripple_of_a_coarse_sensor_is_taken_off(noise: float) -> None:
    rng = np.random.default_rng(141)
    with_ripple: list[Floats] = []
    without: list[Floats] = []
    for _ in range(20):
        offset = rng.uniform(0, 1)
        seen = quantised(rising(SECONDS) + offset + white(rng, 1800, noise), 1.0)
        for step, found in ((None, with_ripple), (1.0, without)):
            points = binned(SECONDS, seen, narrowest=1.0, resolution=step, noise=noise)
            late = points.seconds > 600
            found.append(errors(points)[late] - offset)
    ripple, left = (float(np.sqrt(np.mean(np.concatenate(each) ** 2))) for each in (with_ripple, without))
    assert left < ripple
    assert left < 0.08


def test_a_bare_staircase_is_known_where_it_steps() -> None:
    points = crossings(SECONDS, quantised(rising(SECONDS), 1.0), resolution=1.0)
    assert points is not None
    assert points.seconds.size == 25
    assert np.abs(errors(points)).max() < 0.06


@pytest.mark.parametrize("noise", [0.05, 0.15])
def test_flicker_about_a_step_does_not_move_it(noise: float) -> None:
    """The middle of the flicker would: as the curve flattens, it flickers for longer after the crossing than before."""
    rng = np.random.default_rng(142)
    found, middles = [], []
    for _ in range(20):
        seen = quantised(rising(SECONDS) + white(rng, 1800, noise), 1.0)
        points = crossings(SECONDS, seen, resolution=1.0)
        assert points is not None
        late = (points.seconds > 300) & (points.values < 59)
        found.append(errors(points)[late])
        for border in np.unique(points.values[late]):
            near = np.flatnonzero(
                (np.minimum(seen[:-1], seen[1:]) < border) & (np.maximum(seen[:-1], seen[1:]) > border)
            )
            middles.append(border - rising(np.array([(SECONDS[near[0]] + SECONDS[near[-1] + 1]) / 2]))[0])
    mine, naive = float(np.sqrt(np.mean(np.concatenate(found) ** 2))), float(np.sqrt(np.mean(np.square(middles))))
    assert mine < 0.8 * naive
    assert mine < 0.4 * noise + 0.02


def test_jumps_over_several_levels_are_plain_readings() -> None:
    seconds = counting(400, 5.0)
    seen = quantised(60 - 25 * np.exp(-seconds / 15) - 12 * np.exp(-seconds / 300), 1.0)
    points = crossings(seconds, seen, resolution=1.0)
    assert points is not None
    early = points.seconds < 20
    assert early.any()
    assert set(points.values[early]) <= set(seen)
    assert points.weights[early].max() <= 12.0 + 1e-9


def test_a_few_steps_are_no_curve() -> None:
    assert crossings(SECONDS, quantised(40 + SECONDS / 400, 1.0), resolution=1.0) is None
    assert crossings(SECONDS, np.full(1800, 40.0), resolution=1.0) is None
