"""Numbers that cannot be true become missing, with the number in the detail."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.sensors import Availability, Kind, kind_of
from pytest_thermal.sensors.plausibility import Checked, implausible, plausible_limits


def sensor(unit: Unit = Unit.CELSIUS, device: str = "gpu0", name: str = "x") -> Sensor:
    return Sensor(id=f"{device}.{name}_{unit}", unit=unit, device=device, identity="i", source="s")


class Script:
    """A source that gives what it was told to, one list a reading."""

    name = "script"

    def __init__(self, sensors: Sequence[Sensor], *rounds: Sequence[Reading] | Exception) -> None:
        self._sensors = sensors
        self._rounds = list(rounds)

    def probe(self) -> Availability:
        return Availability(ok=True)

    def sensors(self) -> Sequence[Sensor]:
        return self._sensors

    def read(self) -> Sequence[Reading]:
        given = self._rounds.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    def close(self) -> None:
        pass


def series(one: Sensor, values: Sequence[float], *, seconds: float = 1.0) -> list[float | None]:
    times = iter(range(1000))
    rounds = [[Reading(sensor_id=one.id, value=value)] for value in values]
    checked = Checked(Script([one], *rounds), clock=lambda: next(times) * seconds)
    return [checked.read()[0].value for _ in values]


@pytest.mark.parametrize(
    "unit, device, value",
    [
        (Unit.CELSIUS, "gpu0", 151.0),
        (Unit.CELSIUS, "nvme0", -41.0),
        (Unit.CELSIUS, "gpu0", 0.0),
        (Unit.CELSIUS, "npu1", -1.0),
        (Unit.CELSIUS, "cpu0", -5.0),
        (Unit.CELSIUS, "gpu0", 127.0),
        (Unit.CELSIUS, "gpu0", 128.0),
        (Unit.CELSIUS, "nct6798", 255.0),
        (Unit.CELSIUS, "gpu0", 9.223372036854775792e18),
        (Unit.CELSIUS, "gpu0", 4294967295.0),
        (Unit.CELSIUS, "nvme0", 65261.85),
        (Unit.CELSIUS, "mlu0", 3900.0),
        (Unit.WATTS, "gpu0", 5001.0),
        (Unit.WATTS, "gpu0", -1.0),
        (Unit.WATTS, "gpu0", 0.0),
        (Unit.PERCENT, "gpu0", 100.5),
        (Unit.PERCENT, "gpu0", 4294967295.0),
        (Unit.RPM, "nct6798", 65535.0),
        (Unit.RPM, "nct6798", 32767.0),
        (Unit.MEGAHERTZ, "npu0", 4294967295.0),
    ],
)
def test_what_cannot_be_true(unit: Unit, device: str, value: float) -> None:
    one = sensor(unit, device)
    assert implausible(one, value)
    checked = Checked(Script([one], [Reading(sensor_id=one.id, value=value)]))
    reading = checked.read()[0]
    assert reading.missing is Missing.IMPLAUSIBLE
    assert f"raw {value:.12g}" in reading.detail


@pytest.mark.parametrize(
    "unit, device, value",
    [
        (Unit.CELSIUS, "gpu0", 1.0),
        (Unit.CELSIUS, "gpu0", 110.0),
        (Unit.CELSIUS, "coolant_supply", -10.0),
        (Unit.KELVIN_MARGIN, "gpu0", -1.0),
        (Unit.WATTS, "power_meter0", 12_000.0),
        (Unit.WATTS, "cpu0", 0.0),
        (Unit.PERCENT, "gpu0", 0.0),
        (Unit.RPM, "nct6798", 0.0),
        (Unit.MILLISECONDS, "gpu0", 4294967295.0),
        (Unit.BYTES, "gpu0", 65535.0),
        (Unit.BITS, "gpu0", 0.0),
    ],
)
def test_what_can(unit: Unit, device: str, value: float) -> None:
    assert implausible(sensor(unit, device), value) == ""


def test_every_unit_has_a_range() -> None:
    for unit in Unit:
        assert implausible(sensor(unit), 1e30)


def test_a_spike_is_dropped_and_a_step_is_one_reading_late() -> None:
    gpu = sensor()
    assert series(gpu, [61, 62, 118, 62, 63]) == [61, 62, None, 62, 63]
    assert series(gpu, [40, 41, 84, 85, 86]) == [40, 41, None, 85, 86]
    assert series(gpu, [40, 88, 135, 41, 42]) == [40, None, None, 41, 42]


def test_a_jump_that_a_die_can_make_is_kept() -> None:
    assert series(sensor(device="cpu0"), [38, 88, 40]) == [38, 88, 40]
    assert series(sensor(device="gpu0"), [35, 70, 36]) == [35, 70, 36]
    assert series(sensor(device="coolant_supply"), [25, 55, 26]) == [25, None, 26]


def test_after_a_long_silence_any_value_is_news() -> None:
    assert series(sensor(), [40, 95], seconds=300.0) == [40, 95]


def test_limits_that_are_none() -> None:
    told = {"a": 90.0, "b": 127.0, "c": 0.0, "d": 65261.85, "e": -273.15, "f": -8.0}
    assert plausible_limits(Unit.CELSIUS, told) == {"a": 90.0}


def test_a_source_that_raises_is_missing_and_goes_on() -> None:
    one = sensor()
    checked = Checked(Script([one], RuntimeError("bus error"), [Reading(sensor_id=one.id, value=50)]))
    first = checked.read()[0]
    assert first.missing is Missing.UNREADABLE
    assert "RuntimeError: bus error" in first.detail
    assert checked.read()[0].value == 50


def test_a_source_gives_one_reading_of_each_of_its_sensors() -> None:
    one, two = sensor(device="gpu0"), sensor(device="gpu1")
    given = [
        Reading(sensor_id="gpu9.x_celsius", value=50),
        Reading(sensor_id=two.id, value=51),
        Reading(sensor_id=two.id, value=52),
    ]
    readings = Checked(Script([one, two], given)).read()
    assert [(reading.sensor_id, reading.missing) for reading in readings] == [
        (one.id, Missing.ABSENT),
        (two.id, Missing.NOT_UNDERSTOOD),
    ]


@pytest.mark.parametrize(
    "device, kind",
    [
        ("cpu", Kind.CPU), ("cpu0", Kind.CPU), ("cpu_thermal0", Kind.OTHER), ("gpu12", Kind.ACCELERATOR),
        ("gpu_0000_2b_00_0", Kind.ACCELERATOR), ("npu3", Kind.ACCELERATOR), ("mlu0", Kind.ACCELERATOR),
        ("amdgpu0", Kind.ACCELERATOR), ("gpu_thermal0", Kind.ACCELERATOR), ("nvme0", Kind.OTHER),
        ("nct6798", Kind.OTHER), ("pump0", Kind.OTHER), ("platform", Kind.OTHER),
    ],
)  # fmt: skip
def test_what_a_device_is(device: str, kind: Kind) -> None:
    assert kind_of(device) is kind
