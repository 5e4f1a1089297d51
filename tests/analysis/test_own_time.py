"""The loads' own share of the processors, from what was booked stretch by stretch."""

from __future__ import annotations

import pytest

from pytest_thermal.analysis import OwnTime, own_share


def stretch(start: float, end: float, share: float, **more: float) -> OwnTime:
    return OwnTime(start_seconds=start, end_seconds=end, share=share, cores=8.0, **more)


def test_stretches_count_by_how_much_of_them_is_inside() -> None:
    told = own_share([stretch(0, 30, 1.0), stretch(30, 60, 0.5), stretch(60, 90, 0.0)], 15.0, 75.0)
    assert told.value == pytest.approx(100 * (15 * 1.0 + 30 * 0.5 + 15 * 0.0) / 60)
    assert told.unit == "percent"
    assert told.detail["least"] == 0.0


def test_a_hole_is_no_time_without_load() -> None:
    assert own_share([stretch(0, 30, 0.9), stretch(45, 60, 0.9)], 0.0, 60.0).value == pytest.approx(90.0)


@pytest.mark.parametrize("stretches", [[], [stretch(0, 29, 0.9)], [stretch(60, 90, 0.9)]])
def test_nothing_is_said_where_less_than_half_is_accounted_for(stretches: list[OwnTime]) -> None:
    told = own_share(stretches, 0.0, 60.0)
    assert told.value is None
    assert told.reason == "the load's own CPU time was not recorded"


def test_what_held_it_up_is_kept() -> None:
    told = own_share([stretch(0, 30, 0.0, stopped=1.0), stretch(30, 60, 0.5, quota_cores=4.0)], 0.0, 60.0)
    assert told.detail["stopped"] == pytest.approx(0.5)
    assert told.detail["quota_cores"] == 4.0
    assert told.detail["cores"] == 8.0
