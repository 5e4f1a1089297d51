"""A Prometheus as a source: one machine's series, each sample as new as it says, and a reason for all that is none."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator

import pytest

from pytest_thermal.bench import Monitor
from pytest_thermal.model import Missing, Reading
from pytest_thermal.model.kinds import is_pump
from pytest_thermal.sensors import Source, SourceSpec, SpecError, discover, open_source
from pytest_thermal.sensors.prometheus import server as prometheus_server
from pytest_thermal.sensors.registry import Found
from pytest_thermal.sensors.specs import bench_specs
from tests.sensors.fake_prometheus import FakePrometheus, serve
from tests.support.patience import PATIENCE_SECONDS

CARDS = """
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a1",device="nvidia0",modelName="NVIDIA H200"} 51
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-b2",device="nvidia1",modelName="NVIDIA H200"} 53
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a1",device="nvidia0",modelName="NVIDIA H200"} 412.5
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a1",device="nvidia0",modelName="NVIDIA H200"} 99
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a1",device="nvidia0",modelName="NVIDIA H200"} 2048
DCGM_FI_DEV_MEMORY_TEMP{gpu="0",UUID="GPU-a1",device="nvidia0",modelName="NVIDIA H200"} 9223372036854775794
DCGM_FI_DEV_MEMORY_TEMP{gpu="1",UUID="GPU-b2",device="nvidia1",modelName="NVIDIA H200"} 0
"""
CDU = """
cdu_pump_rpm{pump="a"} 2800
cdu_pump_rpm{pump="b"} 2760
cdu_supply_celsius 31.5
cdu_flow 38.5
"""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is a thread of this process, which may stand still."""
    for name in ("_CONNECT_SECONDS", "_READ_SECONDS", "_TOTAL_SECONDS"):
        monkeypatch.setattr(prometheus_server, name, PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def server() -> Iterator[FakePrometheus]:
    fake = FakePrometheus()
    running = serve(fake)
    yield fake
    running.shutdown()
    running.server_close()


@pytest.fixture
def prometheus(server: FakePrometheus) -> FakePrometheus:
    server.lines, server.raw, server.refused, server.only_get, server.scrape_seconds = [], None, "", False, 5.0
    server.asked.clear()
    server.clock = time.time
    server.write("up 1", job="dcgm", instance="node7:9400")
    server.write(CARDS, job="dcgm", instance="node7:9400")
    server.write("up 1", job="cdu", instance="cdu-3:9116")
    server.write(CDU, job="cdu", instance="cdu-3:9116")
    return server


def spec(prometheus: FakePrometheus, named: dict[str, str] | None = None, **settings: object) -> SourceSpec:
    sensors = {device: f"prometheus:{expression}" for device, expression in (named or {}).items()}
    monitor = Monitor.model_validate({"prometheus_url": prometheus.url, "sensors": sensors, **settings})
    (found,) = [one for one in bench_specs(monitor) if one.name == "prometheus"]
    return found


def found(prometheus: FakePrometheus, named: dict[str, str] | None = None, **settings: object) -> Found:
    return discover([spec(prometheus, named, **settings)]).found[0]


def values(one: Found) -> dict[str, float | None]:
    return {name: reading.value for name, reading in one.readings.items()}


@pytest.fixture
def opened(prometheus: FakePrometheus) -> Iterator[Source]:
    source = open_source(spec(prometheus, {"pump0": 'cdu_pump_rpm{pump="a"}', "hottest": "max(DCGM_FI_DEV_GPU_TEMP)"}))
    source.sensors()
    yield source
    source.close()


def read(source: Source) -> dict[str, Reading]:
    return {reading.sensor_id: reading for reading in source.read()}


# --------------------------------------------------------------------------------------------------- what there is


def test_cards_keep_their_numbers_and_uuids(prometheus: FakePrometheus) -> None:
    one = found(prometheus)
    assert values(one) == {
        "gpu0.temperature_celsius": 51,
        "gpu1.temperature_celsius": 53,
        "gpu0.power_watts": 412.5,
        "gpu0.utilization_percent": 99,
        "gpu0.memory.used_bytes": 2048 * 2**20,
    }
    assert {sensor.device: sensor.identity for sensor in one.sensors} == {"gpu0": "GPU-a1", "gpu1": "GPU-b2"}
    told = {absent.sensor.id: absent.reading.detail for absent in one.absent}
    assert told == {
        "gpu0.memory.temperature_celsius": "DCGM's blank",
        "gpu1.memory.temperature_celsius": "raw 0: there is no such sensor",
    }


def test_other_exporters_are_called_as_our_own_sources_call_them(prometheus: FakePrometheus) -> None:
    prometheus.lines.clear()
    prometheus.write(
        """
        npu_chip_info_temperature{id="3",vdie_id="A1 B2",pcie_bus_info="0000:C1:00.0",pod_name="x"} 47
        npu_chip_info_power{id="3",vdie_id="A1 B2",pcie_bus_info="0000:C1:00.0",pod_name="x"} 288.4
        npu_chip_info_hbm_temperature{id="3",vdie_id="A1 B2",pcie_bus_info="0000:C1:00.0"} 52
        ipmi_temperature_celsius{id="1",name="Coolant Inlet"} 31
        ipmi_temperature_celsius{id="9",name="CPU1 Temp"} 60
        ipmi_fan_speed_rpm{id="2",name="LIQ_PUMP_A"} 3180
        ipmi_fan_speed_rpm{id="4",name="FAN 1"} 5040
        ipmi_fan_speed_rpm{id="5",name="FAN 1"} 5280
        ipmi_power_watts{id="6",name="PSU1 Power"} 640
        node_hwmon_chip_names{chip="platform_coretemp_0",chip_name="coretemp"} 1
        node_hwmon_sensor_label{chip="platform_coretemp_0",label="Package id 0",sensor="temp1"} 1
        node_hwmon_sensor_label{chip="platform_coretemp_0",label="Core 0",sensor="temp2"} 1
        node_hwmon_temp_celsius{chip="platform_coretemp_0",sensor="temp1"} 62
        node_hwmon_temp_celsius{chip="platform_coretemp_0",sensor="temp2"} 59
        node_hwmon_chip_names{chip="nvme_nvme0",chip_name="nvme"} 1
        node_hwmon_sensor_label{chip="nvme_nvme0",label="Composite",sensor="temp1"} 1
        node_hwmon_temp_celsius{chip="nvme_nvme0",sensor="temp1"} 40
        node_thermal_zone_temp{type="acpitz",zone="0"} 28
        node_thermal_zone_temp{type="x86_pkg_temp",zone="1"} 62
        """,
        job="all", instance="node7:9100",
    )  # fmt: skip
    one = found(prometheus)
    assert values(one) == {
        "npu3.temperature_celsius": 47,
        "npu3.power_watts": 288.4,
        "npu3.memory.temperature_celsius": 52,
        "coolant_supply.temperature_celsius": 31,
        "liq_pump_a.speed_rpm": 3180,
        "fan_1_4.speed_rpm": 5040,
        "fan_1_5.speed_rpm": 5280,
        "psu1.power_watts": 640,
        "cpu0.package.temperature_celsius": 62,
        "nvme0.temperature_celsius": 40,
        "acpitz0.temperature_celsius": 28,
    }
    left_out = {absent.sensor.id for absent in one.absent}
    assert left_out == {
        "bmc_cpu1.temperature_celsius",
        "cpu0.core_0.temperature_celsius",
        "x86_pkg_temp0.temperature_celsius",
    }


def test_what_the_bench_names_is_there_with_its_unit(prometheus: FakePrometheus) -> None:
    one = found(
        prometheus,
        {
            "pump0": 'cdu_pump_rpm{pump="a"}',
            "coolant_supply": "cdu_supply_celsius",
            "flow.flow_liters_per_minute": "cdu_flow",
        },
    )
    here = values(one)
    assert here["pump0.speed_rpm"] == 2800
    assert here["coolant_supply.temperature_celsius"] == 31.5
    assert here["flow.flow_liters_per_minute"] == 38.5
    assert here["gpu1.temperature_celsius"] == 53
    assert [sensor.id for sensor in one.sensors if is_pump(sensor)] == ["pump0.speed_rpm"]


def test_instances_of_one_card_are_one_card(prometheus: FakePrometheus) -> None:
    prometheus.lines.clear()
    for instance, util in (("1", "0"), ("2", "0")):
        prometheus.write(
            f"""
            DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-a1",GPU_I_ID="{instance}",pod="p{instance}"}} 51
            DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-a1",GPU_I_ID="{instance}",pod="p{instance}"}} {util}
            """,
            job="dcgm", instance="node7:9400",
        )  # fmt: skip
    one = found(prometheus)
    assert values(one) == {"gpu0.temperature_celsius": 51}
    assert "2 instances" in one.absent[0].reading.detail


def test_of_two_servers_that_stand_in_for_each_other_the_newer_sample_counts(prometheus: FakePrometheus) -> None:
    prometheus.lines.clear()
    for replica, celsius, age_seconds in (("a", 51, 4.0), ("b", 52, 1.0)):
        prometheus.write(
            f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-a1",replica="{replica}"}} {celsius}',
            job="dcgm",
            instance="node7:9400",
            age_seconds=age_seconds,
        )
    source = open_source(spec(prometheus))
    source.sensors()
    assert read(source)["gpu0.temperature_celsius"].value == 52
    prometheus.lines[1].age_seconds = 9.0
    assert read(source)["gpu0.temperature_celsius"].value == 51
    source.close()


def test_energy_counters_become_watts_by_their_own_times(prometheus: FakePrometheus) -> None:
    prometheus.clock = lambda: 1_796_000_000.0  # what passes between two readings here is not what is tried
    prometheus.lines.clear()
    prometheus.write(
        'node_rapl_package_joules_total{index="0",path="/sys/class/powercap/intel-rapl:0"} 1000',
        job="n", instance="node7:9100", age_seconds=10.0,
    )  # fmt: skip
    source = open_source(spec(prometheus))
    assert source.probe().ok
    (first,) = source.read()
    assert first.missing is Missing.UNREADABLE
    prometheus.lines[0].value, prometheus.lines[0].age_seconds = "3000", 0.0
    for _ in range(2):
        (reading,) = source.read()
        assert reading.value == pytest.approx(200)
        # The same sample again says the same.
        prometheus.lines[0].age_seconds = 0.5
    prometheus.lines[0].value, prometheus.lines[0].age_seconds = "20", -10.0
    assert source.read()[0].missing is Missing.UNREADABLE
    source.close()


# --------------------------------------------------------------------------------------------------- each reading


def test_a_reading_costs_two_queries(prometheus: FakePrometheus, opened: Source) -> None:
    prometheus.asked.clear()
    here = read(opened)
    assert here["pump0.speed_rpm"].value == 2800
    assert here["hottest.temperature_celsius"].value == 53
    assert len(prometheus.asked) == 2
    assert {method for method, _, _ in prometheus.asked} == {"POST"}


@pytest.mark.parametrize("age_seconds, is_value", [(4.0, True), (14.0, True), (60.0, False), (299.0, False)])
def test_a_sample_that_is_too_old_is_no_reading(
    prometheus: FakePrometheus, opened: Source, age_seconds: float, is_value: bool
) -> None:
    for line in prometheus.lines:
        line.age_seconds = age_seconds
    for name in ("gpu0.temperature_celsius", "pump0.speed_rpm", "hottest.temperature_celsius"):
        reading = read(opened)[name]
        assert (reading.value is not None) is is_value
        assert is_value or (reading.missing is Missing.STALE and f"{age_seconds:.0f} s old" in reading.detail)


def test_the_oldest_that_goes_into_an_expression_counts(prometheus: FakePrometheus, opened: Source) -> None:
    (line,) = [one for one in prometheus.lines if one.value == "51"]
    line.age_seconds = 200.0
    here = read(opened)
    assert here["hottest.temperature_celsius"].missing is Missing.STALE
    assert here["gpu1.temperature_celsius"].value == 53


def test_how_old_a_sample_may_be_goes_by_how_often_its_target_is_asked(prometheus: FakePrometheus) -> None:
    prometheus.scrape_seconds = 60.0
    for line in prometheus.lines:
        line.age_seconds = 100.0
    one = found(prometheus)
    assert values(one)["gpu0.temperature_celsius"] == 51
    assert "asked every 60 s" in one.availability.reason


def test_what_was_pushed_long_ago_is_not_measured_now(prometheus: FakePrometheus) -> None:
    prometheus.write('pump_celsius{job="push",instance="x"} 44')
    prometheus.write('push_time_seconds{job="push",instance="x"} 1700000000')
    prometheus.write('push_time_seconds{job="push",instance="another"} 1700000000')
    one = found(prometheus, {"pump0": "pump_celsius", "pump1": 'max(pump_celsius{job="push"})'})
    for name in ("pump0.temperature_celsius", "pump1.temperature_celsius"):
        assert one.readings[name].missing is Missing.STALE
        assert "push gateway" in one.readings[name].detail
    prometheus.set("push_time_seconds", "99999999999", instance="x")
    assert values(found(prometheus, {"pump0": "pump_celsius"}))["pump0.temperature_celsius"] == 44


@pytest.mark.parametrize(
    "text, missing", [("NaN", Missing.NOT_OFFERED), ("+Inf", Missing.NOT_OFFERED), ("-Inf", Missing.NOT_OFFERED)]
)
def test_what_is_no_number_is_missing(prometheus: FakePrometheus, opened: Source, text: str, missing: Missing) -> None:
    prometheus.set("cdu_pump_rpm", text, pump="a")
    prometheus.set("DCGM_FI_DEV_GPU_TEMP", text, gpu="0")
    here = read(opened)
    for name in ("pump0.speed_rpm", "gpu0.temperature_celsius"):
        assert (here[name].missing, here[name].detail) == (missing, text)
    assert here["gpu1.temperature_celsius"].value == 53


def test_an_exporters_words_for_a_failed_read_are_no_values(prometheus: FakePrometheus) -> None:
    prometheus.lines.clear()
    prometheus.write('npu_chip_info_temperature{id="1"} 47', job="npu", instance="node7:8082")
    source = open_source(spec(prometheus))
    source.sensors()
    for text in ("-1", "4294967295"):
        prometheus.set("npu_chip_info_temperature", text)
        assert source.read()[0].missing is Missing.DEVICE_ERROR
    source.close()


def test_a_metric_that_is_gone_is_absent_and_the_others_go_on(prometheus: FakePrometheus, opened: Source) -> None:
    prometheus.forget("cdu_pump_rpm")
    here = read(opened)
    assert here["pump0.speed_rpm"].missing is Missing.ABSENT
    assert "no such series" in here["pump0.speed_rpm"].detail
    assert here["gpu0.temperature_celsius"].value == 51
    prometheus.set("up", "0", job="cdu")
    assert "does not reach the exporter cdu-3:9116" in read(opened)["pump0.speed_rpm"].detail


def test_another_series_than_at_the_start_is_not_taken_for_it(prometheus: FakePrometheus) -> None:
    prometheus.forget("cdu_pump_rpm")
    prometheus.write("cdu_pump_rpm 2800", job="cdu", instance="cdu-3:9116")
    source = open_source(spec(prometheus, {"pump0": "cdu_pump_rpm"}))
    source.sensors()
    assert read(source)["pump0.speed_rpm"].value == 2800
    prometheus.write("cdu_pump_rpm 1000", job="cdu", instance="cdu-4:9116")
    reading = read(source)["pump0.speed_rpm"]
    assert (reading.value, reading.missing) == (None, Missing.NOT_UNDERSTOOD)
    assert "2 series" in reading.detail
    prometheus.lines = [line for line in prometheus.lines if line.value != "2800"]
    reading = read(source)["pump0.speed_rpm"]
    assert reading.missing is Missing.ABSENT
    assert "cdu-4" in reading.detail
    source.close()


def test_an_expression_that_cannot_be_computed_now_takes_no_other_with_it(
    prometheus: FakePrometheus, opened: Source
) -> None:
    prometheus.refused = "max(DCGM"
    here = read(opened)
    assert here["pump0.speed_rpm"].value == 2800
    assert here["hottest.temperature_celsius"].missing is Missing.NOT_UNDERSTOOD
    assert "many-to-many" in here["hottest.temperature_celsius"].detail


PAGE = b"<!DOCTYPE html><html><body>Sign in</body></html>"


@pytest.mark.parametrize(
    "raw, missing, words",
    [
        ((503, "text/plain", b"Service Unavailable"), Missing.UNREADABLE, "503"),
        ((502, "text/html", PAGE), Missing.UNREADABLE, "502"),
        ((200, "text/html", PAGE), Missing.NOT_UNDERSTOOD, "a page for people"),
        ((401, "text/plain", b"Unauthorized"), Missing.UNREADABLE, "$PROMETHEUS_TOKEN"),
        ((404, "text/plain", b"404 page not found"), Missing.UNREADABLE, "prometheus_url"),
        ((200, "application/json", b'{"status":"ok"}'), Missing.NOT_UNDERSTOOD, "not Prometheus"),
        ((200, "application/json", b'{"status":"success","data":{"resultType":"vec'), Missing.NOT_UNDERSTOOD, "not Pr"),
        ((200, "application/json", b'{"status":"success","data":{}}'), Missing.NOT_UNDERSTOOD, "not whole"),
        (
            (503, "application/json", b'{"status":"error","errorType":"timeout","error":"query timed out"}'),
            Missing.UNREADABLE,
            "query timed out",
        ),
    ],
)
def test_a_server_that_fails_is_a_reason_and_at_the_start_one_too(
    prometheus: FakePrometheus, opened: Source, raw: tuple[int, str, bytes], missing: Missing, words: str
) -> None:
    prometheus.raw = raw
    here = read(opened)
    assert {reading.missing for reading in here.values()} == {missing}
    assert all(words in reading.detail for reading in here.values())
    one = found(prometheus)
    assert not one.availability.ok
    assert words in one.availability.reason
    prometheus.raw = None
    assert read(opened)["pump0.speed_rpm"].value == 2800


# --------------------------------------------------------------------------------------------- refused at the start


@pytest.mark.parametrize(
    "expression, words",
    [
        ("cdu_pump_rpm", ("2 series", 'pump="a"', "narrow it by labels")),
        ('cdu_pump_rpm{pump="c"}', ("selects nothing", 'pump="b"', "a label has another value")),
        ("cdu_pum_rpm", ("the server has no cdu_pum_rpm", "near to it: cdu_pump_rpm")),
        ("cdu_flow", ("does not say in which unit", '"pump0.temperature_celsius" = ')),
        ("cdu_pump_rpm[5m]", ("is a matrix", "avg_over_time")),
    ],
)
def test_an_expression_that_is_no_sensor_ends_the_run_before_it_begins(
    prometheus: FakePrometheus, expression: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(SpecError) as raised:
        found(prometheus, {"pump0": expression})
    said = str(raised.value)
    assert "pump0" in said
    assert "\nlikely: " in said
    assert "\ntry: " in said
    for word in words:
        assert word in said


def test_prometheus_own_words_tell_what_is_wrong_with_an_expression(prometheus: FakePrometheus) -> None:
    prometheus.refused = "cdu_supply_celsius{"
    with pytest.raises(SpecError, match="many-to-many matching not allowed"):
        found(prometheus, {"x": "cdu_supply_celsius{"})


def test_a_server_that_cannot_be_asked_is_refused_where_the_bench_counts_on_it(prometheus: FakePrometheus) -> None:
    prometheus.raw = (503, "text/plain", b"")
    with pytest.raises(SpecError, match="503"):
        found(prometheus, {"pump0": "cdu_pump_rpm"})


def test_two_machines_are_never_mixed(prometheus: FakePrometheus) -> None:
    prometheus.write(CARDS.replace("GPU-", "GPU-other-"), job="dcgm", instance="node8:9400")
    with pytest.raises(SpecError) as raised:
        found(prometheus)
    assert "2 machines: node7, node8" in str(raised.value)
    assert 'prometheus_labels = {instance = "node7"}' in str(raised.value)
    one = found(prometheus, prometheus_labels={"instance": ("node8",)})
    assert {sensor.identity for sensor in one.sensors} == {"GPU-other-a1", "GPU-other-b2"}
    with pytest.raises(SpecError, match=r"gpu0\..* would be several series"):
        found(prometheus, prometheus_labels={"instance": ("node7", "node8")})
    # Who names a single series has said which; what exporters tell is then left out, and that is said.
    one = found(prometheus, {"pump0": 'cdu_pump_rpm{pump="a"}'})
    assert list(values(one)) == ["pump0.speed_rpm"]
    assert "left out: it knows 2 machines" in one.availability.reason


def test_a_machine_that_does_not_answer_is_not_replaced_by_its_neighbour(prometheus: FakePrometheus) -> None:
    prometheus.write("up 0", job="dcgm", instance="node6:9400")
    with pytest.raises(SpecError, match="2 machines: node6, node7"):
        found(prometheus)


def test_one_machine_under_two_names_is_one(prometheus: FakePrometheus) -> None:
    prometheus.lines.clear()
    prometheus.write(
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a1",Hostname="node7"} 51', job="d", instance="127.0.0.1:9400"
    )
    prometheus.write('ipmi_fan_speed_rpm{id="2",name="Pump 1"} 3200', job="i", instance="localhost:9290")
    assert set(values(found(prometheus))) == {"gpu0.temperature_celsius", "pump1.speed_rpm"}


# -------------------------------------------------------------------------------------------------- the way to it


def test_a_token_and_a_password_come_from_the_environment_and_are_shown_nowhere(
    prometheus: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_TOKEN", "token-of-the-test")
    assert found(prometheus).sensors
    assert {header for _, _, header in prometheus.asked} == {"Bearer token-of-the-test"}
    prometheus.asked.clear()
    monkeypatch.setenv("PROMETHEUS_PASSWORD", "correct-horse")
    one = found(prometheus, prometheus_user="ops")
    basic = base64.b64encode(b"ops:correct-horse").decode()
    assert {header for _, _, header in prometheus.asked} == {f"Basic {basic}"}
    assert "correct-horse" not in repr(one)
    assert set(one.spec.secrets) == {"PROMETHEUS_TOKEN", "PROMETHEUS_PASSWORD"}
    monkeypatch.delenv("PROMETHEUS_PASSWORD")
    prometheus.asked.clear()
    assert "$PROMETHEUS_PASSWORD is not set" in found(prometheus, prometheus_user="ops").availability.reason
    assert prometheus.asked == []


def test_where_only_get_is_let_through_it_is_asked_so(prometheus: FakePrometheus) -> None:
    prometheus.only_get = True
    assert found(prometheus).sensors
    assert [method for method, _, _ in prometheus.asked[:3]] == ["POST", "GET", "GET"]


def test_a_bench_without_a_prometheus_has_no_such_source() -> None:
    assert "prometheus" not in {one.name for one in bench_specs(Monitor())}
