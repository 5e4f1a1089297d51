"""Accelerators and processors by Redfish: what is read of each, what it is called, and when it gives way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.sensors import SourceSpec, discover
from pytest_thermal.sensors.redfish.source import RedfishSource, make
from pytest_thermal.sensors.registry import Discovery
from pytest_thermal.sensors.source import Availability
from tests.sensors.redfish_service import ROOT, Service, Tree, collection, link

BOARD = f"{ROOT}/Systems/HGX_0"
PROCESSORS = f"{BOARD}/Processors"


@pytest.fixture
def served() -> Iterator[list[Service]]:
    running: list[Service] = []
    yield running
    for service in running:
        service.__exit__(None, None, None)


def tray(gpus: Mapping[str, float], **more: Any) -> Tree:
    """An accelerator tray: a chassis a GPU with its sensors, which the processors' metrics are excerpts of."""
    tree: Tree = {ROOT: {"Systems": link(f"{ROOT}/Systems"), "Chassis": link(f"{ROOT}/Chassis"), **more}}
    collection(tree, f"{ROOT}/Systems", {"HGX_0": {"Processors": link(PROCESSORS)}})
    collection(tree, f"{ROOT}/Chassis", {name: {"Sensors": link(f"{ROOT}/Chassis/{name}/Sensors")} for name in gpus})
    collection(
        tree,
        PROCESSORS,
        {
            **{
                name: {
                    "Name": "Processor",
                    "ProcessorType": "GPU",
                    "EnvironmentMetrics": link(f"{PROCESSORS}/{name}/EnvironmentMetrics"),
                    "Metrics": link(f"{PROCESSORS}/{name}/ProcessorMetrics"),
                }
                for name in gpus
            },
            "FPGA_0": {
                "ProcessorType": "FPGA",
                "EnvironmentMetrics": link(f"{PROCESSORS}/FPGA_0/EnvironmentMetrics"),
            },
        },
    )
    for name, celsius in gpus.items():
        sensors = f"{ROOT}/Chassis/{name}/Sensors"
        collection(
            tree,
            sensors,
            {
                f"{name}_TEMP_0": {
                    "Name": f"{name} TEMP 0", "Reading": celsius, "ReadingUnits": "Cel", "PhysicalContext": "GPU",
                    "Thresholds": {"UpperCritical": {"Reading": 92.0}},
                },
                f"{name}_TEMP_1": {
                    "Name": f"{name} TEMP 1", "Reading": 87 - celsius, "ReadingUnits": "Cel", "PhysicalContext": "GPU",
                    "ReadingBasis": "Headroom",
                },
                f"{name}_Rise": {"Name": f"{name} Rise", "Reading": 4, "ReadingUnits": "Cel", "ReadingBasis": "Delta"},
            },
        )  # fmt: skip
        tree[f"{PROCESSORS}/{name}/EnvironmentMetrics"] = {
            "TemperatureCelsius": {"Reading": celsius, "DataSourceUri": f"{sensors}/{name}_TEMP_0"},
            "PowerWatts": {"Reading": 10 * celsius},
            "PowerLimitWatts": {"SetPoint": 1000},
        }
        tree[f"{PROCESSORS}/{name}/ProcessorMetrics"] = {
            "BandwidthPercent": 97.5, "OperatingSpeedMHz": 1965, "TemperatureCelsius": 1.0,
        }  # fmt: skip
    return tree


def source(served: list[Service], tree: Tree) -> tuple[Service, RedfishSource]:
    service = Service(tree, password=None)
    served.append(service.__enter__())
    return service, make(host=service.url)


def values(one: RedfishSource) -> dict[str, float | None]:
    return {reading.sensor_id: reading.value for reading in one.read()}


def test_each_card_of_a_tray_has_its_own_figures(served: list[Service]) -> None:
    _, one = source(served, tray({"GPU_SXM_1": 61, "GPU_SXM_2": 64.5}))
    assert values(one) == {
        "gpu1.temperature_celsius": 61, "gpu1.power_watts": 610,
        "gpu1.utilization_percent": 97.5, "gpu1.clock_megahertz": 1965,
        "gpu2.temperature_celsius": 64.5, "gpu2.power_watts": 645,
        "gpu2.utilization_percent": 97.5, "gpu2.clock_megahertz": 1965,
    }  # fmt: skip
    sensors = {sensor.id: sensor for sensor in one.sensors()}
    hot = sensors["gpu2.temperature_celsius"]
    assert kind_of(hot.device) is Kind.ACCELERATOR
    assert (hot.label, dict(hot.limits)) == ("GPU_SXM_2", {"critical": 92})
    assert sensors["gpu2.power_watts"].limits == {"cap": 1000}
    # What is left of its sensors: degrees to a limit are called that, and the reading itself is not told twice.
    absent = {absent.sensor.id: absent.sensor.unit for absent in one.absent()}
    assert absent == {
        "bmc_gpu_sxm_1_temp_1.temperature_kelvin_margin": Unit.KELVIN_MARGIN,
        "bmc_gpu_sxm_2_temp_1.temperature_kelvin_margin": Unit.KELVIN_MARGIN,
    }


def test_a_card_that_is_gone_moves_no_other(served: list[Service]) -> None:
    whole, fewer = ({f"GPU_{number}": 50 + number for number in numbers} for numbers in ((0, 1, 2, 3), (1, 2, 3)))
    service, one = source(served, tray(whole))
    assert values(one)["gpu3.temperature_celsius"] == 53
    service.tree.pop(f"{PROCESSORS}/GPU_1/EnvironmentMetrics")
    (gone,) = [reading for reading in one.read() if reading.sensor_id == "gpu1.temperature_celsius"]
    assert gone.missing is Missing.ABSENT
    assert values(one)["gpu2.temperature_celsius"] == 52
    _, later = source(served, tray(fewer))
    assert "gpu0.temperature_celsius" not in values(later)
    assert values(later)["gpu3.temperature_celsius"] == 53


@pytest.mark.parametrize(
    "ids, devices",
    [
        (("CPU_0", "CPU_1"), ("cpu0", "cpu1")),
        (("CPU.Socket.1", "CPU.Socket.2"), ("cpu0", "cpu1")),
        (("Left", "Right"), ("cpu0", "cpu1")),
    ],
)
def test_sockets_are_counted_from_0(ids: tuple[str, str], devices: tuple[str, str], served: list[Service]) -> None:
    tree: Tree = {ROOT: {"Systems": link(f"{ROOT}/Systems")}}
    collection(tree, f"{ROOT}/Systems", {"HGX_0": {"Processors": link(PROCESSORS)}})
    collection(
        tree,
        PROCESSORS,
        {name: {"ProcessorType": "CPU", "Metrics": link(f"{PROCESSORS}/{name}/Metrics")} for name in ids},
    )
    for number, name in enumerate(ids):
        tree[f"{PROCESSORS}/{name}/Metrics"] = {"TemperatureCelsius": 60 + number, "ConsumedPowerWatt": None}
    _, one = source(served, tree)
    assert values(one) == {
        f"{device}.package.temperature_celsius": 60 + number for number, device in enumerate(devices)
    }


def test_an_accelerator_is_called_as_it_calls_itself(served: list[Service]) -> None:
    tree = tray({"NPU1": 55})
    tree[f"{PROCESSORS}/NPU1"]["ProcessorType"] = "Accelerator"
    tree[f"{PROCESSORS}/NPU1"]["Name"] = "NPU1"
    _, one = source(served, tree)
    assert values(one)["npu1.temperature_celsius"] == 55


def test_cards_of_two_systems_keep_apart(served: list[Service]) -> None:
    tree = tray({"GPU_0": 61})
    tree[f"{ROOT}/Systems"]["Members"].append(link(f"{ROOT}/Systems/HGX_1"))
    tree[f"{ROOT}/Systems/HGX_1"] = {"Id": "HGX_1", "Processors": link(f"{ROOT}/Systems/HGX_1/Processors")}
    other = f"{ROOT}/Systems/HGX_1/Processors"
    collection(tree, other, {"GPU_0": {"ProcessorType": "GPU", "EnvironmentMetrics": link(f"{other}/GPU_0/E")}})
    tree[f"{other}/GPU_0/E"] = {"TemperatureCelsius": {"Reading": 70}}
    _, one = source(served, tree)
    found = {name: value for name, value in values(one).items() if name.endswith("temperature_celsius")}
    assert found == {"gpu_hgx_0_0.temperature_celsius": 61, "gpu_hgx_1_0.temperature_celsius": 70}


@pytest.mark.parametrize("levels", [True, False])
def test_the_tray_is_walked_once_with_few_requests(levels: bool, served: list[Service]) -> None:
    features = {"ProtocolFeaturesSupported": {"ExpandQuery": {"NoLinks": True, "Levels": levels}}}
    gpus = {f"GPU_SXM_{number}": 50 + number for number in range(1, 9)}
    service, one = source(served, tray(gpus, **features))
    assert one.probe().ok
    assert len(service.asked) < 40
    expanded = [path for _, path in service.asked if "$expand" in path]
    assert all(path.endswith("$expand=.($levels=1)" if levels else "$expand=.") for path in expanded)
    assert len(expanded) > 8
    service.asked.clear()
    assert len(values(one)) == 32
    # Two resources a card: what is warm and what is busy.
    assert len(service.asked) == 16


def test_of_a_crowd_of_processors_the_first_are_asked(served: list[Service], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_thermal.sensors.redfish.walk._MOST_PROCESSORS", 2)
    service, one = source(served, tray({f"GPU_{number}": 50 for number in range(4)}))
    assert "HGX_0 has 4 processors" in one.probe().reason
    assert sum("EnvironmentMetrics" in path for _, path in service.asked) == 2


def test_a_number_without_end_costs_no_other_reading(served: list[Service]) -> None:
    tree = tray({"GPU_0": 61, "GPU_1": 62})
    endless = 10**400
    tree[f"{PROCESSORS}/GPU_0/EnvironmentMetrics"]["PowerLimitWatts"] = {"SetPoint": endless}
    tree[f"{ROOT}/Chassis/GPU_0/Sensors/GPU_0_TEMP_0"]["Thresholds"] = {"UpperCritical": {"Reading": endless}}
    service, one = source(served, tree)
    assert values(one)["gpu0.power_watts"] == 610
    service.tree[f"{PROCESSORS}/GPU_0/EnvironmentMetrics"]["PowerWatts"] = {"Reading": endless}
    found = {reading.sensor_id: reading for reading in one.read()}
    assert found["gpu0.power_watts"].missing is Missing.NOT_UNDERSTOOD
    assert found["gpu0.temperature_celsius"].value == 61


# ------------------------------------------------------------------------------------------ beside what is inside


class Inside:
    """A source that sees the machine from inside."""

    name = "inside"

    def __init__(self, ids: str) -> None:
        self._sensors = [
            Sensor(id=one, unit=Unit.CELSIUS, device=one.partition(".")[0], identity=one, source="inside")
            for one in ids.split()
        ]

    def probe(self) -> Availability:
        return Availability(ok=True)

    def sensors(self) -> list[Sensor]:
        return self._sensors

    def read(self) -> list[Reading]:
        return [Reading(sensor_id=one.id, value=40.0) for one in self._sensors]

    def close(self) -> None:
        pass


def inside(*, ids: str) -> Inside:
    return Inside(ids)


def both(service: Service, ids: str, **needed: str) -> Discovery:
    mine = SourceSpec(name="inside", factory=f"{__name__}:inside", options={"ids": ids})
    roles = {"roles": f'{{"gpu0": "{needed["gpu0"]}"}}'} if needed else {}
    theirs = SourceSpec(
        name="redfish",
        factory="pytest_thermal.sensors.redfish.source:make",
        options={"host": service.url, **roles},
        from_outside=True,
        needed=needed,
    )
    return discover([theirs, mine])


@pytest.mark.parametrize(
    "ids, left",
    [
        ("gpu0.temperature_celsius", 0),
        ("npu3.power_watts", 0),
        ("cpu0.package.temperature_celsius", 8),
        ("nvme0.temperature_celsius", 8),
    ],
)
def test_cards_give_way_to_those_that_a_driver_counts(ids: str, left: int, served: list[Service]) -> None:
    service, _ = source(served, tray({"GPU_0": 61, "GPU_1": 62}))
    found = {one.spec.name: one for one in both(service, ids).found}
    assert len(found["redfish"].sensors) == left
    assert ("which of them is which cannot be told" in found["redfish"].availability.reason) is (left == 0)
    assert [sensor.id for sensor in found["inside"].sensors] == ids.split()


def test_a_card_that_the_bench_names_stays(served: list[Service]) -> None:
    service, _ = source(served, tray({"GPU_0": 61, "GPU_1": 62}))
    for name, count in (("GPU_1", 4), (f"{PROCESSORS}/GPU_1/EnvironmentMetrics#TemperatureCelsius", 1)):
        found = both(service, "gpu5.temperature_celsius", gpu0=name)
        (redfish,) = [one for one in found.found if one.spec.name == "redfish"]
        assert {sensor.device for sensor in redfish.sensors} == {"gpu0"}
        assert len(redfish.sensors) == count
        assert redfish.readings["gpu0.temperature_celsius"].value == 62
