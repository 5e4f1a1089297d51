from __future__ import annotations

import random

import pytest

from pytest_thermal.demo.thermal_model import (
    AMBIENT_CELSIUS,
    COOLANT_CAPACITY,
    DEVICES,
    FAN_FULL_RPM,
    IDLE,
    PUMP_RPM,
    RADIATOR,
    Condition,
    LoadWatch,
    LoopModel,
    Since,
    _Network,
    _solve,
)

FULL = {"cpu0": 1.0, "gpu0": 1.0, "gpu1": 1.0}


def always(condition: Condition) -> LoopModel:
    return LoopModel(fault=lambda _since, _rng: condition)


def test_idle_it_stays_where_it_begins() -> None:
    model = LoopModel()
    first = model.advance(0.0, IDLE)
    later = model.advance(2000.0, IDLE)
    for name, device in first.devices.items():
        assert later.devices[name].celsius == pytest.approx(device.celsius, abs=1e-6)
        assert later.devices[name].memory_celsius == pytest.approx(device.memory_celsius, abs=1e-6)
    assert later.supply_celsius == pytest.approx(first.supply_celsius, abs=1e-6)


def test_all_the_heat_goes_through_the_radiator() -> None:
    state = LoopModel().advance(5000.0, FULL)
    watts = sum(device.full_watts for device in DEVICES)
    assert state.supply_celsius == pytest.approx(AMBIENT_CELSIUS + watts * RADIATOR, abs=0.05)
    assert state.fan_rpm == pytest.approx(FAN_FULL_RPM, rel=0.01)
    for device in DEVICES:
        drop = device.full_watts * (device.contact + device.transfer)
        assert state.devices[device.name].celsius == pytest.approx(state.supply_celsius + drop, abs=0.05)


def test_one_step_is_the_exact_solution() -> None:
    network = _Network(contacts=(0.05, 0.034, 0.07), transfers=(0.055, 0.034, 0.2), radiator=0.0055)
    watts, ambient = (300.0, 475.0, 55.0), 27.5
    start = [70.0, 50.0, 66.0, 48.0, 35.0, 34.0, 33.0]

    def rates(at: list[float]) -> list[float]:
        coolant, into, found = at[6], 0.0, []
        for index, device in enumerate(DEVICES):
            die, plate = at[2 * index], at[2 * index + 1]
            through, out = (die - plate) / network.contacts[index], (plate - coolant) / network.transfers[index]
            into += out
            found += [(watts[index] - through) / device.die_capacity, (through - out) / device.plate_capacity]
        return [*found, (into - (coolant - ambient) / network.radiator) / COOLANT_CAPACITY]

    def moved(at: list[float], by: list[float], step: float) -> list[float]:
        return [a + step * b for a, b in zip(at, by, strict=True)]

    at, step = start, 0.005
    for _ in range(100):  # Runge and Kutta's fourth order, an independent way to the same half second
        one = rates(at)
        two = rates(moved(at, one, step / 2))
        three = rates(moved(at, two, step / 2))
        four = rates(moved(at, three, step))
        mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(one, two, three, four, strict=True)]
        at = moved(at, mean, step)
    given = (*start, *watts, ambient)
    exact = [sum(a * b for a, b in zip(row, given, strict=True)) for row in _solve(network)]
    assert exact == pytest.approx(at, abs=1e-9)


def test_how_time_is_cut_does_not_matter() -> None:
    whole, pieces = LoopModel(), LoopModel()
    pieces_state = pieces.advance(0.0, FULL)
    for _ in range(1000):
        pieces_state = pieces.advance(0.3, FULL)
    whole_state = whole.advance(300.0, FULL)
    for name, device in whole_state.devices.items():
        assert pieces_state.devices[name].celsius == pytest.approx(device.celsius, abs=0.02)


def test_after_the_load_every_die_only_cools() -> None:
    model = LoopModel()
    last = model.advance(700.0, FULL)
    model.advance(5.0, IDLE)  # until the power has followed
    last = model.advance(0.0, IDLE)
    for _ in range(600):
        state = model.advance(0.5, IDLE)
        for name, device in state.devices.items():
            assert device.celsius <= last.devices[name].celsius
        last = state


def test_without_a_pump_devices_slow_down_before_they_would_have_to_shut_down() -> None:
    model = always(Condition(pump=0.0))
    hottest = dict.fromkeys(FULL, 0.0)
    for _ in range(2000):
        state = model.advance(1.0, FULL)
        hottest = {name: max(hottest[name], device.celsius) for name, device in state.devices.items()}
    for device in DEVICES:
        assert device.slowdown_celsius < hottest[device.name] < device.shutdown_celsius
        assert state.devices[device.name].thermal_milliseconds > 100_000
        assert state.devices[device.name].megahertz < 0.9 * device.full_megahertz
        assert state.devices[device.name].watts < 0.6 * device.full_watts
    assert state.pump_rpm == 0.0
    assert state.flow_liters_per_minute == 0.0


def test_healthy_devices_never_slow_down() -> None:
    state = LoopModel().advance(2000.0, FULL)
    assert [device.thermal_milliseconds for device in state.devices.values()] == [0.0, 0.0, 0.0]
    assert state.pump_rpm == PUMP_RPM


def test_less_flow_means_a_wider_gap_from_supply_to_return() -> None:
    good, poor = LoopModel().advance(900.0, FULL), always(Condition(flow=0.35)).advance(900.0, FULL)
    assert 1.0 < good.return_celsius - good.supply_celsius < 5.0
    assert (
        2 * (good.return_celsius - good.supply_celsius)
        < poor.return_celsius - poor.supply_celsius
        < poor.devices["gpu0"].celsius - poor.supply_celsius
    )


@pytest.mark.parametrize(
    "condition, least",
    [
        (Condition(plates=2.0), 10.0),
        (Condition(contact={"gpu0": 1.9}), 10.0),
        (Condition(radiator=2.4), 5.0),
        (Condition(ambient_celsius=AMBIENT_CELSIUS + 17.0), 15.0),
    ],
)
def test_what_is_worse_is_warmer(condition: Condition, least: float) -> None:
    good, bad = LoopModel().advance(900.0, FULL), always(condition).advance(900.0, FULL)
    assert bad.devices["gpu0"].celsius > good.devices["gpu0"].celsius + least
    assert (bad.devices["gpu1"].celsius > good.devices["gpu1"].celsius + 1.0) is not bool(condition.contact)


def watched(*stretches: tuple[float, float]) -> Since:
    """What is known after so many seconds of such a load, one after the other."""
    watch, since = LoadWatch(), Since()
    for seconds, busy in stretches:
        for _ in range(round(seconds / 0.5)):
            since = watch.advance({"gpu0": busy}, 0.5)
    return since


@pytest.mark.parametrize(
    "stretches, expected",
    [
        (((100, 0.0),), Since()),
        (((100, 0.0), (4, 1.0), (10, 0.0)), Since()),
        (((100, 0.3),), Since()),
        (((100, 0.0), (40, 1.0)), Since(on=40.0)),
        (((40, 1.0), (4, 0.0), (6, 1.0)), Since(on=50.0)),
        (((40, 1.0), (20, 0.0)), Since(on=60.0, off=20.0)),
        (((40, 1.0), (20, 0.0), (10, 1.0)), Since(on=70.0)),
        (((40, 1.0), (60, 0.0), (10, 1.0)), Since(on=10.0)),
    ],
    ids=["idle", "blip", "light", "loaded", "dip", "off", "pause", "again"],
)
def test_load_is_told_from_idle(stretches: tuple[tuple[float, float], ...], expected: Since) -> None:
    assert watched(*stretches) == expected


def test_chance_is_the_seeds() -> None:
    def chancy(since: Since, rng: random.Random) -> Condition:
        return Condition(plates=1.0 + rng.random()) if since.on is not None else Condition()

    def celsius(seed: int) -> float:
        return LoopModel(fault=chancy, seed=seed).advance(12.0, FULL).devices["gpu0"].celsius

    assert celsius(1) == celsius(1)
    assert celsius(1) != celsius(2)
