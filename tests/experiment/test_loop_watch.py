"""What the loop's own sensors say while a run goes on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_thermal.experiment.loop_watch import Alarm, LoopWatch
from pytest_thermal.model import Sensor, Unit

PUMP, OTHER, LEAK = "pump0.speed_rpm", "pump1.speed_rpm", "leak0.detector_state"
TURNS, STANDS = 2800.0, 0.0


def sensor(name: str) -> Sensor:
    unit = next(unit for unit in Unit if name.endswith(f"_{unit}"))
    return Sensor(id=name, unit=unit, device=name.split(".", maxsplit=1)[0], identity=name, source="any at all")


def told(
    values: Sequence[float | None],
    *,
    every: float = 1.0,
    idle: int = 2,
    name: str = PUMP,
    named: Sequence[str] = (),
    time_scale: float = 1.0,
) -> list[tuple[int, Alarm]]:
    """Alarms with the number of the reading that raised them; the load comes on at reading number ``idle``."""
    watch = LoopWatch([sensor(name)], named=named, time_scale=time_scale)
    return [
        (number, alarm)
        for number, value in enumerate(values)
        for alarm in watch.look(1e9 + number * every, {name: value}, loaded=number >= idle)
    ]


def test_a_pump_that_stands_takes_the_load_off_once() -> None:
    ((number, alarm),) = told([TURNS] * 20 + [STANDS] * 20)
    assert number == 23  # the first reading of 0 is number 20, and three seconds confirm it
    assert alarm.critical
    assert alarm.text == f"{PUMP} stands, after 2800 rpm"


@pytest.mark.parametrize("odd", [[STANDS], [None], [STANDS, None], [STANDS, STANDS]])
def test_odd_readings_end_no_run(odd: list[float | None]) -> None:
    assert told(([TURNS] * 30 + odd) * 10) == []


def test_a_missing_reading_between_two_of_nothing_is_no_turning() -> None:
    assert [number for number, _ in told([TURNS] * 9 + [STANDS, None, None, STANDS])] == [12]


def test_at_the_pace_of_a_controller_the_second_reading_counts() -> None:
    assert [number for number, _ in told([TURNS] * 6 + [STANDS] * 3, every=10.0)] == [7]


def test_a_loop_that_is_faster_than_a_real_one_is_judged_in_its_own_time() -> None:
    assert [number for number, _ in told([TURNS] * 6 + [STANDS] * 9, every=0.25, time_scale=20.0)] == [7]


def test_a_pump_may_stand_without_a_load() -> None:
    assert told([TURNS] * 5 + [STANDS] * 50, idle=1000) == []


def test_one_that_stood_when_the_load_came_on_has_half_a_minute_to_begin() -> None:
    stood = [TURNS] * 5 + [STANDS] * 15
    assert told([*stood, *[STANDS] * 20, *[TURNS] * 60], idle=20) == []
    assert [number for number, _ in told([*stood, *[STANDS] * 60], idle=20)] == [50]


def test_a_pump_that_never_turned_is_nobodys_unless_the_bench_names_it() -> None:
    assert told([STANDS] * 100) == []
    ((_, alarm),) = told([STANDS] * 100, named=["pump0"])
    assert alarm.critical
    assert "although the bench names it" in alarm.text


def test_a_pump_that_is_measured_as_a_share_is_one_too() -> None:
    ((_, alarm),) = told([62.0] * 9 + [STANDS] * 9, name="cdu1_pump2.speed_percent")
    assert alarm.text == "cdu1_pump2.speed_percent stands, after 62 %"


def test_a_pump_that_another_takes_over_from_is_told_and_ends_nothing() -> None:
    watch = LoopWatch([sensor(PUMP), sensor(OTHER)])
    found: list[Alarm] = []
    for number in range(60):
        first = TURNS if number < 30 else STANDS
        found += watch.look(float(number), {PUMP: first, OTHER: TURNS - first}, loaded=True)
    (alarm,) = found
    assert not alarm.critical
    assert alarm.text == f"{PUMP} stands, after 2800 rpm; {OTHER} has taken over"


def test_of_two_pumps_that_turned_one_that_stops_counts() -> None:
    watch = LoopWatch([sensor(PUMP), sensor(OTHER)])
    found: list[Alarm] = []
    for number in range(60):
        found += watch.look(float(number), {PUMP: TURNS if number < 30 else STANDS, OTHER: TURNS}, loaded=True)
    assert [alarm.critical for alarm in found] == [True]


@pytest.mark.parametrize("idle", [0, 1000])
def test_a_leak_is_believed_at_once_and_in_any_phase(idle: int) -> None:
    ((number, alarm),) = told([0.0] * 5 + [2.0] * 5, name=LEAK, idle=idle)
    assert (number, alarm.critical, alarm.what) == (5, True, "leak")
    assert alarm.text == f"{LEAK} reports a leak (critical)"


def test_a_warning_of_a_leak_warns_and_what_follows_counts() -> None:
    found = told([0.0, 1.0, 1.0, None, 1.0, 2.0], name=LEAK)
    assert [(number, alarm.critical) for number, alarm in found] == [(1, False), (5, True)]


def test_a_detector_that_is_silent_says_nothing() -> None:
    assert told([None] * 50, name=LEAK) == []


@pytest.mark.parametrize("name", ["fan0.speed_rpm", "pump0.power_watts", "leak0.flow_liters_per_minute"])
def test_what_is_no_pump_and_no_detector_is_left_alone(name: str) -> None:
    assert told([TURNS] * 9 + [STANDS] * 50, name=name) == []
