from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_thermal.recording.clock import ClockWatch, RunClock


@dataclass
class Machine:
    """A machine whose system clock can be set."""

    monotonic_seconds: float = 50.0
    wall_seconds: float = 1_800_000_000.0
    stall_seconds: float = 0.0

    def pass_time(self, seconds: float) -> None:
        self.monotonic_seconds += seconds
        self.wall_seconds += seconds

    def monotonic(self) -> float:
        return self.monotonic_seconds

    def wall(self) -> float:
        seen = self.wall_seconds
        self.pass_time(self.stall_seconds)
        return seen


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def clock(machine: Machine) -> RunClock:
    return RunClock(unix_seconds=machine.wall_seconds, monotonic_seconds=machine.monotonic_seconds)


def watch(clock: RunClock, machine: Machine) -> ClockWatch:
    return ClockWatch(clock, wall=machine.wall, monotonic=machine.monotonic)


def test_times_go_on_when_the_system_clock_is_set(machine: Machine, clock: RunClock) -> None:
    before = clock.at(machine.monotonic())
    machine.wall_seconds -= 3600
    machine.pass_time(1.0)
    assert clock.at(machine.monotonic()) - before == pytest.approx(1.0)


@pytest.mark.parametrize("set_by", [-3600.0, -0.7, 0.7, 86400.0])
def test_a_step_is_noticed_once_with_its_size(machine: Machine, clock: RunClock, set_by: float) -> None:
    looking = watch(clock, machine)
    machine.pass_time(5.0)
    assert looking.step() is None
    machine.wall_seconds += set_by
    machine.pass_time(1.0)
    assert looking.step() == pytest.approx(set_by)
    machine.pass_time(1.0)
    assert looking.step() is None
    assert looking.offset_seconds == pytest.approx(set_by)


def test_a_step_back_is_told_too(machine: Machine, clock: RunClock) -> None:
    looking = watch(clock, machine)
    machine.wall_seconds += 100
    looking.step()
    machine.wall_seconds -= 100
    assert looking.step() == pytest.approx(-100)
    assert looking.offset_seconds == pytest.approx(0.0)


def test_small_corrections_of_a_time_service_are_no_step(machine: Machine, clock: RunClock) -> None:
    looking = watch(clock, machine)
    machine.wall_seconds += 0.2
    assert looking.step() is None


def test_being_held_up_between_the_two_clocks_is_no_step(machine: Machine, clock: RunClock) -> None:
    looking = watch(clock, machine)
    machine.stall_seconds = 20.0
    assert looking.step() is None
