from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.model import Sensor, Unit
from pytest_thermal.recording.naming import Naming


def cards(*identities: str, quantities: Sequence[str] = ("temperature_celsius",)) -> list[Sensor]:
    """What a source that numbers its cards in the order of their identities finds."""
    return [
        Sensor(
            id=f"gpu{number}.{quantity}",
            unit=Unit.CELSIUS,
            device=f"gpu{number}",
            identity=identity,
            source="nvml",
        )
        for number, identity in enumerate(identities)
        for quantity in quantities
    ]


def named(naming: Naming, sensors: Sequence[Sensor]) -> dict[str, str]:
    return {sensor.id: sensor.identity for sensor in naming.assign(sensors)}


def test_first_names_are_as_given() -> None:
    assert Naming().assign(cards("A", "B")) == tuple(cards("A", "B"))


def test_the_cards_behind_a_lost_one_keep_their_names() -> None:
    naming = Naming()
    naming.assign(cards("A", "B", "C"))
    assert named(naming, cards("B", "C")) == {"gpu1.temperature_celsius": "B", "gpu2.temperature_celsius": "C"}


def test_a_card_that_comes_back_gets_its_own_name_back() -> None:
    naming = Naming()
    naming.assign(cards("A", "B"))
    naming.assign(cards("B"))
    assert naming.assign(cards("A", "B")) == tuple(cards("A", "B"))


def test_another_card_in_the_same_place_gets_another_name_for_all_its_sensors() -> None:
    naming = Naming()
    quantities = ("temperature_celsius", "memory.temperature_celsius", "power_watts")
    naming.assign(cards("A", "B", quantities=quantities))
    found = naming.assign(cards("B", "X", quantities=quantities))
    assert [(sensor.device, sensor.identity) for sensor in found] == [("gpu1", "B")] * 3 + [("gpu2", "X")] * 3
    assert [sensor.id for sensor in found[3:]] == [f"gpu2.{quantity}" for quantity in quantities]


def test_a_new_card_that_sorts_in_front_takes_no_name_of_another() -> None:
    naming = Naming()
    naming.assign(cards("B", "C"))
    assert named(naming, cards("A", "B", "C")) == {
        "gpu2.temperature_celsius": "A",
        "gpu0.temperature_celsius": "B",
        "gpu1.temperature_celsius": "C",
    }


def test_a_name_is_not_given_again_to_a_third_card() -> None:
    naming = Naming()
    naming.assign(cards("A"))
    naming.assign(cards("B"))
    assert named(naming, cards("C")) == {"gpu2.temperature_celsius": "C"}


def test_sensors_of_one_device_may_each_have_an_identity() -> None:
    """As hwmon's labels: the device is named by the source, and every identity is known the second time."""
    sensors = [
        Sensor(
            id=f"cpu0.core{n}.temperature_celsius",
            unit=Unit.CELSIUS,
            device="cpu0",
            identity=f"coretemp/{n}",
            source="hwmon",
        )
        for n in range(3)
    ]
    naming = Naming()
    assert naming.assign(sensors) == tuple(sensors)
    assert naming.assign(sensors[1:]) == tuple(sensors[1:])


def test_names_of_an_earlier_recorder_of_the_run_are_kept() -> None:
    assert named(Naming(cards("A", "B")), cards("B")) == {"gpu1.temperature_celsius": "B"}


def test_a_device_without_a_number_gets_one_when_its_name_is_taken() -> None:
    def supply(identity: str) -> list[Sensor]:
        return [
            Sensor(
                id="coolant_supply.temperature_celsius",
                unit=Unit.CELSIUS,
                device="coolant_supply",
                identity=identity,
                source="cdu",
            )
        ]

    naming = Naming()
    naming.assign(supply("A"))
    assert named(naming, supply("B")) == {"coolant_supply1.temperature_celsius": "B"}
