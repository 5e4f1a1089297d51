from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.analysis.throttling import ThrottleKind, kind_of, measure_throttling
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.series import Figure, Phase, Series
from tests.analysis.signals import EPOCH, Floats, counting, series, ticks

STEADY = Phase(name="steady", start_seconds=EPOCH + 100, end_seconds=EPOCH + 400)
TIMES = ticks(500)


def counter(milliseconds: Floats) -> Series:
    return series(TIMES, milliseconds, name="gpu0.throttled_milliseconds", unit=Unit.MILLISECONDS)


def flag(active: Floats) -> Series:
    return series(TIMES, active, name="gpu0.throttled_count", unit=Unit.COUNT)


def active_between(start: float, end: float) -> Floats:
    return np.where((EPOCH + start <= TIMES) & (EPOCH + end > TIMES), 1.0, 0.0)


def spent(reason: str, readings: Series) -> Figure:
    return measure_throttling({reason: readings}, STEADY).reasons[reason]


@pytest.mark.parametrize(
    "reason, kind",
    [
        ("hw_thermal_slowdown", ThrottleKind.THERMAL),
        ("sw_thermal_slowdown", ThrottleKind.THERMAL),
        ("clocks_event_reasons.hw_thermal_slowdown", ThrottleKind.THERMAL),
        ("prochot", ThrottleKind.THERMAL),
        ("SW Power Cap", ThrottleKind.POWER),
        ("sw_power_cap", ThrottleKind.POWER),
        ("hw_power_brake_slowdown", ThrottleKind.POWER),
        ("hw_slowdown", ThrottleKind.EITHER),
        ("gpu_idle", ThrottleKind.OTHER),
        ("sync_boost", ThrottleKind.OTHER),
        ("applications_clocks_setting", ThrottleKind.OTHER),
    ],
)
def test_a_reason_has_its_kind(reason: str, kind: ThrottleKind) -> None:
    assert kind_of(reason) is kind


def test_a_counter_counts_what_it_grew_by_in_the_phase() -> None:
    grown = np.cumsum(active_between(50, 130) * 1000)
    found = spent("hw_thermal_slowdown", counter(5e6 + grown))
    assert found.value == pytest.approx(30_000, abs=1000)


def test_a_counter_that_stands_still_is_zero() -> None:
    assert spent("sw_power_cap", counter(np.full(500, 123_456.0))).value == 0.0


def test_a_counter_that_begins_again_is_not_negative() -> None:
    grown = np.cumsum(active_between(150, 250) * 1000)
    restarted = np.where(TIMES >= EPOCH + 200, grown - grown[200] + 1000, 7e6 + grown)
    assert spent("hw_thermal_slowdown", counter(restarted)).value == pytest.approx(100_000, abs=1500)


def test_a_flag_holds_until_the_next_reading() -> None:
    found = spent("sw_thermal_slowdown", flag(active_between(150, 180)))
    assert found.value == 30_000
    assert found.uncertainty == pytest.approx(1000 * np.sqrt(2 / 12))


def test_a_flag_counts_within_the_phase_only() -> None:
    assert spent("sw_thermal_slowdown", flag(active_between(0, 500))).value == pytest.approx(300_000)


def test_a_flag_is_not_believed_through_a_long_gap() -> None:
    readings = active_between(150, 500)
    readings[(TIMES > EPOCH + 150) & (TIMES < EPOCH + 390)] = np.nan
    assert spent("sw_thermal_slowdown", flag(readings)).value == pytest.approx(5_000 + 10_000)


def test_power_is_not_thermal_and_thermal_reasons_are_not_added_up() -> None:
    found = measure_throttling(
        {
            "sw_power_cap": flag(active_between(100, 400)),
            "hw_slowdown": flag(active_between(200, 260)),
            "hw_thermal_slowdown": flag(active_between(200, 260)),
            "sw_thermal_slowdown": flag(active_between(200, 220)),
        },
        STEADY,
    )
    assert found.thermal.value == 60_000
    assert found.thermal.detail["reason"] == "hw_thermal_slowdown"
    assert found.reasons["sw_power_cap"].value == 300_000
    assert found.reasons["sw_power_cap"].detail["kind"] == "power"


def test_a_device_without_thermal_reasons_has_no_figure_for_it() -> None:
    assert measure_throttling({}, STEADY).thermal.value is None
    only_power = measure_throttling({"sw_power_cap": flag(active_between(100, 200))}, STEADY)
    assert only_power.thermal.value is None
    assert "thermal" in only_power.thermal.reason


def test_a_reason_that_was_not_read_in_the_phase_is_missing() -> None:
    blank = np.where(TIMES < EPOCH + 60, 0.0, np.nan)
    found = measure_throttling({"hw_thermal_slowdown": flag(blank)}, STEADY)
    assert found.reasons["hw_thermal_slowdown"].value is None
    assert found.thermal.value is None
    assert "hw_thermal_slowdown" in found.thermal.reason


def test_a_counter_read_every_five_seconds_is_right_to_its_period() -> None:
    times = ticks(100, 5.0)
    grown = np.cumsum(np.where((counting(100) >= 30) & (counting(100) < 40), 5000.0, 0.0))
    slow = series(times, grown, period=5.0, name="gpu0.throttled_milliseconds", unit=Unit.MILLISECONDS)
    assert spent("hw_thermal_slowdown", slow).value == pytest.approx(50_000, abs=5000)


def test_what_a_counter_grew_by_before_the_phase_does_not_count() -> None:
    times = ticks(13, 40.0)  # the phase begins in the middle of a period
    grown = counting(13, 4000.0)
    slow = series(times, grown, period=40.0, name="gpu0.throttled_milliseconds", unit=Unit.MILLISECONDS)
    assert spent("hw_thermal_slowdown", slow).value == pytest.approx(4000 * (360 - 100) / 40)
