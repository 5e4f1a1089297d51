"""What a machine offers: each source tried for itself, one sensor for each id, and the list a person reads."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator

import pytest

from pytest_thermal.bench import Monitor
from pytest_thermal.model.catalogue import catalogue
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.sensors import SensorSet, Source, SourceSpec, SpecError, discover, open_source, registry
from pytest_thermal.sensors.listing import as_json, rows, table
from pytest_thermal.sensors.specs import bench_specs, builtin_specs
from tests.sensors import factories


def spec(factory: str, name: str | None = None, **more: object) -> SourceSpec:
    options = {key: value for key, value in more.items() if key not in {"fallback_for", "maker"}}
    return SourceSpec(
        name=name or factory,
        factory=f"tests.sensors.factories:{factory}",
        options=options,  # type: ignore[arg-type]
        fallback_for=f"{more.get('fallback_for', '')}",
        maker=f"{more.get('maker', '')}",
    )


@pytest.fixture
def _no_leftover() -> Iterator[None]:
    factories.RELEASE.clear()
    yield
    factories.RELEASE.set()


def test_sources_fail_each_for_itself() -> None:
    found = discover([spec("raises"), spec("raising"), spec("steady")])
    assert [one.spec.name for one in found.found] == ["raises", "raising", "steady"]
    assert "it cannot be made" in found.found[0].availability.reason
    assert "the bus is gone" in found.found[1].availability.reason
    assert [sensor.id for sensor in found.sensors] == ["gpu0.temperature_celsius", "gpu1.temperature_celsius"]
    assert [one.name for one in found.specs] == ["steady"]


@pytest.mark.usefixtures("_no_leftover")
def test_a_source_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    start = registry._Trial.start

    def start_and_end(trial: registry._Trial) -> None:
        start(trial)
        if "hanging" not in trial.name:  # the other has its answer before the time of the one that hangs begins
            trial.join()

    monkeypatch.setattr(registry._Trial, "start", start_and_end)
    found = discover([spec("hanging"), spec("steady")], seconds=0.3)
    assert found.found[0].availability.reason == "gave no answer in 0.3 s"
    assert found.found[1].availability.ok


def test_two_makers_devices_of_one_name_are_two_devices() -> None:
    found = discover(
        [
            spec("steady", "a", devices="gpu0,gpu1", maker="nvidia"),
            spec("steady", "b", devices="gpu0", maker="amd"),
            spec("steady", "again", devices="gpu0", maker="nvidia"),
            spec("steady", "c", devices="dcu0", maker="hygon"),
        ]
    )
    assert [(sensor.id, sensor.device) for sensor in found.sensors] == [
        ("gpu0.temperature_celsius", "gpu0"),
        ("gpu1.temperature_celsius", "gpu1"),
        ("gpu_amd0.temperature_celsius", "gpu_amd0"),
        ("dcu0.temperature_celsius", "dcu0"),
    ]
    assert {kind_of(sensor.device) for sensor in found.sensors} == {Kind.ACCELERATOR}
    # A recorder makes the same sources of the descriptions, in a process of its own.
    with SensorSet(pickle.loads(pickle.dumps(found.specs))) as sensors:
        assert [sensor.id for sensor in sensors.sensors] == [sensor.id for sensor in found.sensors]
        assert sorted(sensors.read()) == sorted(sensor.id for sensor in found.sensors)
    assert not any(one.spec.name == "again" for one in found.found if one.sensors)
    assert {row["sensor"]: row["reason"] for row in rows(found)}["gpu_amd0.fan.speed_percent"] == "not offered: [N/A]"


def test_of_one_id_the_first_source_counts() -> None:
    found = discover([spec("steady", "a", devices="gpu1"), spec("steady", "b", devices="gpu0,gpu1,gpu2")])
    assert [(sensor.id, sensor.identity) for sensor in found.sensors] == [
        ("gpu1.temperature_celsius", "uuid of gpu1"),
        ("gpu0.temperature_celsius", "uuid of gpu0"),
        ("gpu2.temperature_celsius", "uuid of gpu2"),
    ]
    with SensorSet(found.specs) as sensors:
        values = {name: reading.value for name, reading in sensors.read().items()}
    assert values == {
        "gpu1.temperature_celsius": 40,
        "gpu0.temperature_celsius": 40,
        "gpu2.temperature_celsius": 42,
    }


def test_a_source_whose_sensors_others_have_is_not_used() -> None:
    found = discover([spec("steady", "a"), spec("steady", "b")])
    assert [one.name for one in found.specs] == ["a"]
    assert found.found[1].availability.reason == "a gives all of its sensors already"
    named = [row["sensor"] for row in rows(found) if row["sensor"]]
    assert len(named) == len(set(named)) == 3


def test_two_sources_of_one_name_are_refused() -> None:
    with pytest.raises(SpecError, match="two sources are called 'steady'"):
        discover([spec("steady"), spec("raising", "steady")])


@pytest.mark.parametrize(
    "factory, options, words",
    [
        ("tests.sensors.factories:nowhere", {}, "nowhere"),
        ("tests.sensors.nowhere:make", {}, "nowhere"),
        ("no colon", {}, "cannot be imported"),
        ("", {}, "cannot be imported"),
        ("tests.sensors.factories:nothing_to_call", {}, "cannot be called"),
        ("tests.sensors.factories:no_source", {}, "is no source"),
        ("tests.sensors.factories:steady", {"colour": "red"}, "colour"),
    ],
)
def test_a_description_that_leads_nowhere_says_so(factory: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        open_source(SourceSpec(name="x", factory=factory, options=options))
    with pytest.raises(SpecError, match=words):
        discover([SourceSpec(name="x", factory=factory, options=options)])


def test_a_description_travels_to_another_process() -> None:
    for one in builtin_specs():
        assert pickle.loads(pickle.dumps(one)) == one
        assert json.loads(json.dumps(dict(one.options))) == dict(one.options)


@pytest.mark.parametrize("one", builtin_specs(), ids=lambda one: one.name)
def test_every_source_keeps_the_contract_on_this_machine(one: SourceSpec) -> None:
    source = open_source(one)
    assert isinstance(source, Source)
    assert source.name == one.name
    availability = source.probe()
    assert availability.ok or availability.reason
    sensors = list(source.sensors())
    assert sensors == list(source.sensors())
    assert [reading.sensor_id for reading in source.read()] == [sensor.id for sensor in sensors]
    assert availability.ok == bool(sensors)
    for sensor in sensors:
        assert sensor.source == one.name
        assert sensor.id.startswith(f"{sensor.device}.")
        assert sensor.id.endswith(f"_{sensor.unit}")
    source.close()
    source.close()


# ----------------------------------------------------------------------------------------------------- benches


def test_a_benchs_own_command_and_path_come_last() -> None:
    monitor = Monitor(gpu_temp_cmd="npu-smi info", cpu_temp_path="/run/cpu", gpu_indices=(1, 3), cpu_zones=(0, "soc"))
    specs = {one.name: one for one in bench_specs(monitor, sysfs="/host/sys")}
    assert list(specs)[-2:] == ["cpu_temp_path", "gpu_temp_cmd"]
    assert specs["gpu_temp_cmd"].options == {"command": "npu-smi info", "only": "1,3"}
    assert specs["cpu_temp_path"].options == {"path": "/run/cpu"}
    assert specs["nvml"].options == {"only": "1,3"}
    assert specs["thermal_zones"].options == {"sysfs": "/host/sys", "proc": "/proc", "only": "0,soc"}
    assert specs["cpu_temperature"].options == {"sysfs": "/host/sys", "proc": "/proc"}
    assert specs["nvidia-smi"].fallback_for == "nvml"
    assert "gpu_temp_cmd" not in {one.name for one in bench_specs(Monitor())}


# ------------------------------------------------------------------------------------------------------ listing


def test_the_list_has_a_row_for_each_sensor_and_each_reason() -> None:
    found = discover([spec("steady", devices="gpu0"), spec("raising")])
    assert json.loads(as_json(found)) == [
        {
            "sensor": "gpu0.temperature_celsius", "value": 40, "unit": "celsius",
            "source": "steady", "device": "gpu0", "reason": "",
        },
        {
            "sensor": "gpu0.fan.speed_percent", "value": None, "unit": "percent",
            "source": "steady", "device": "gpu0", "reason": "not offered: [N/A]",
        },
        {
            "sensor": None, "value": None, "unit": None,
            "source": "raising", "device": None, "reason": "gpu0.fan.speed_percent: not offered: [N/A]",
        },
    ]  # fmt: skip


def test_a_source_of_which_nothing_is_known_is_one_row() -> None:
    assert rows(discover([spec("raises")])) == [
        {
            "sensor": None, "value": None, "unit": None, "source": "raises", "device": None,
            "reason": "making it raised RuntimeError: it cannot be made",
        }
    ]  # fmt: skip


def test_the_table_is_told_in_chinese() -> None:
    text = table(discover([spec("steady", devices="gpu0,gpu10"), spec("raises")]), catalogue("zh"))
    assert text.splitlines() == [
        "steady",
        "  gpu0.temperature_celsius   40 °C",
        "  gpu10.temperature_celsius  41 °C",
        "  gpu0.fan.speed_percent     –  不提供：[N/A]",
        "raises：不可用：创建时抛出 RuntimeError：it cannot be made",
        "",
        "2 个传感器，来自 1 个来源",
    ]


def test_the_table_is_for_a_person() -> None:
    text = table(discover([spec("steady", devices="gpu0,gpu10"), spec("raises")]))
    assert text.splitlines() == [
        "steady",
        "  gpu0.temperature_celsius   40 °C",
        "  gpu10.temperature_celsius  41 °C",
        "  gpu0.fan.speed_percent     –  not offered: [N/A]",
        "raises: not available: making it raised RuntimeError: it cannot be made",
        "",
        "2 sensors of 1 source",
    ]
