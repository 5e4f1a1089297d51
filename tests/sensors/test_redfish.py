"""A BMC or CDU by Redfish: what is found in its tree, what becomes of readings that are none, and its manners."""

from __future__ import annotations

import json
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from pytest_thermal.bench import Monitor, Redactor, load_bench
from pytest_thermal.model import Missing, Reading
from pytest_thermal.model.kinds import is_leak_detector, is_pump
from pytest_thermal.recording import SourceOrder, create_run, read_run, start_recorder
from pytest_thermal.sensors import SpecError, discover, open_source
from pytest_thermal.sensors.redfish import client as client_module
from pytest_thermal.sensors.redfish import link as link_module
from pytest_thermal.sensors.redfish import source as source_module
from pytest_thermal.sensors.redfish.reading_times import ReadingTimes
from pytest_thermal.sensors.redfish.source import RedfishSource, make
from pytest_thermal.sensors.registry import Found
from pytest_thermal.sensors.specs import bench_specs
from tests.sensors.redfish_service import (
    CDU,
    CHASSIS,
    PASSWORD,
    ROOT,
    USER,
    Answer,
    Service,
    Tree,
    cdu,
    chassis,
    link,
    said,
)
from tests.support.patience import PATIENCE_SECONDS, until

PUMP = "pump1.speed_rpm"
LEAK = "leak_tray.detector_state"

Open = Callable[..., Service]


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDFISH_PASSWORD", PASSWORD)
    # Both are for the gateway; a BMC is asked directly.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    # The service is a thread of this process, which may stand still.
    monkeypatch.setattr(link_module, "ONE_SECONDS", PATIENCE_SECONDS)
    for name in ("READ_SECONDS", "WALK_SECONDS"):
        monkeypatch.setattr(source_module, name, PATIENCE_SECONDS)
    for name in ("CONNECT_SECONDS", "CLOSE_SECONDS"):
        monkeypatch.setattr(client_module, name, PATIENCE_SECONDS)


@pytest.fixture
def serve() -> Iterator[Open]:
    running: list[Service] = []

    def start(tree: Tree, **more: Any) -> Service:
        service = Service(tree, **more)
        running.append(service.__enter__())
        return service

    yield start
    for service in running:
        service.__exit__(None, None, None)


def source(service: Service, *, user: str | None = USER, **more: Any) -> RedfishSource:
    return make(host=service.url, user=user, **more)


def read(one: RedfishSource) -> dict[str, Reading]:
    return {reading.sensor_id: reading for reading in one.read()}


def values(one: RedfishSource) -> dict[str, float | None]:
    return {name: reading.value for name, reading in read(one).items()}


def found(service: Service, **monitor: Any) -> Found:
    asked = Monitor(redfish_host=service.url, redfish_user=USER, **monitor)
    (spec,) = [one for one in bench_specs(asked) if one.name == "redfish"]
    return discover([spec]).found[0]


# ------------------------------------------------------------------------------------------------------ what is found


def test_a_coolant_distribution_unit_is_read_by_what_its_parts_are(serve: Open) -> None:
    service = serve(cdu())
    one = source(service)
    assert values(one) == {
        PUMP: 3580,
        LEAK: 0,
        "coolant_supply.temperature_celsius": 31.5,
        "coolant_supply.pressure_pascals": 305_500,
        "coolant_return.temperature_celsius": 40.25,
        "coolant.flow_liters_per_minute": 82.5,
        "facility_supply.temperature_celsius": 17.5,
        "facility_supply.pressure_pascals": 305_500,
        "facility_return.temperature_celsius": 23.0,
        "facility.flow_liters_per_minute": 130.0,
    }
    assert [sensor.id for sensor in one.sensors() if is_pump(sensor)] == [PUMP]
    assert [sensor.id for sensor in one.sensors() if is_leak_detector(sensor)] == [LEAK]
    (absent,) = one.absent()
    assert (absent.sensor.id, absent.reading.detail) == ("pump2.speed_percent", "Disabled")


def test_a_server_is_read_once_where_its_tree_tells_a_reading_thrice(serve: Open) -> None:
    one = source(serve(chassis()))
    assert values(one) == {
        "inlet.temperature_celsius": 23.5,
        "coolant_supply.temperature_celsius": pytest.approx(32.0),
        "coolant.flow_liters_per_minute": 30.0,
        "fan_1_tach.speed_rpm": 5000,
        "fan_bay1.speed_rpm": 5040,
        "node.power_watts": 1480.5,
        "psu_1.power_watts": 740,
    }
    (inlet,) = [sensor for sensor in one.sensors() if sensor.device == "inlet"]
    assert inlet.limits == {"max": 38.0, "critical": 42.0}
    assert inlet.source == "redfish"
    absent = {absent.sensor.id: absent.reading for absent in one.absent()}
    assert absent["outlet.temperature_celsius"].detail == "Absent"
    assert "not of the cooling" in absent["bmc_cpu1.temperature_celsius"].detail


OLD: dict[str, Any] = {
    "Temperatures": [
        {"MemberId": "0", "Name": "Inlet", "ReadingCelsius": 24, "Status": OK_, "UpperThresholdCritical": 45}
        for OK_ in ({"State": "Enabled", "Health": "OK"},)
    ]
    + [
        {"MemberId": "1", "Name": "CPU1 DTS", "ReadingCelsius": -47, "Status": {"State": "Enabled"}},
        {"MemberId": "2", "Name": "GPU3 Inlet", "ReadingCelsius": 0, "Status": {"State": "Absent"}},
        {"MemberId": "3", "Name": "Outlet", "ReadingCelsius": None, "Status": {"State": "Enabled"}},
    ],
    "Fans": [
        {"MemberId": "0", "Name": "Fan1", "Reading": 2100, "ReadingUnits": "RPM"},
        {"MemberId": "1", "Name": "Fan2", "Reading": 38, "ReadingUnits": "Percent"},
        {"MemberId": "2", "FanName": "Pump 1", "CurrentReading": 3100, "Units": "RPM"},
        {"MemberId": "3", "Name": "Fan4", "Reading": 40},
    ],
}


def old() -> Tree:
    tree: Tree = {
        ROOT: {"Chassis": link(f"{ROOT}/Chassis")},
        f"{ROOT}/Chassis": {"Members": [link(CHASSIS)]},
        CHASSIS: {"Id": "1", "Thermal": link(f"{CHASSIS}/Thermal"), "Power": link(f"{CHASSIS}/Power")},
        f"{CHASSIS}/Thermal": json.loads(json.dumps(OLD)),
        f"{CHASSIS}/Power": {
            "PowerControl": [{"MemberId": "0", "Name": "System", "PowerConsumedWatts": 910}],
            "PowerSupplies": [{"MemberId": "0", "Name": "PSU1", "LastPowerOutputWatts": 450}],
        },
    }
    return tree


def test_an_older_service_is_read_too_and_its_units_are_kept_apart(serve: Open) -> None:
    one = source(serve(old()))
    assert values(one) == {
        "inlet.temperature_celsius": 24,
        "fan1.speed_rpm": 2100,
        "fan2.speed_percent": 38,
        PUMP: 3100,
        "system.power_watts": 910,
        "psu1.power_watts": 450,
    }
    absent = {absent.sensor.id: absent.reading.detail for absent in one.absent()}
    assert absent["fan4.speed_rpm"].startswith("left out, since it does not say")
    assert absent["outlet.temperature_celsius"] == "null"
    assert "cpu1_dts.temperature_kelvin_margin" in absent


def test_an_element_of_an_array_is_known_by_itself_and_not_by_its_place(serve: Open) -> None:
    service = serve(old())
    one = source(service)
    one.sensors()
    fans = service.tree[f"{CHASSIS}/Thermal"]["Fans"]
    fans.reverse()
    assert values(one)[PUMP] == 3100
    fans[:] = [fan for fan in fans if fan["MemberId"] != "2"]
    assert read(one)[PUMP].missing is Missing.ABSENT
    assert values(one)["fan1.speed_rpm"] == 2100


def test_a_collection_on_several_pages_is_read_to_its_end(serve: Open) -> None:
    tree = cdu()
    pumps = tree[f"{CDU}/Pumps"]
    tree[f"{CDU}/Pumps"] = {"Members": pumps["Members"][:1], "Members@odata.nextLink": f"{CDU}/Pumps2"}
    # A page that leads back to the first one ends the list.
    tree[f"{CDU}/Pumps2"] = {"Members": pumps["Members"][1:], "Members@odata.nextLink": f"{CDU}/Pumps"}
    tree[f"{CDU}/Pumps/B"] = {"Id": "B", "Name": "Pump 2", "PumpSpeedPercent": {"SpeedRPM": 3000}}
    assert values(source(serve(tree)))["pump2.speed_rpm"] == 3000


def test_of_two_units_each_pump_keeps_its_own_name(serve: Open) -> None:
    tree = cdu()
    other = CDU.removesuffix("1") + "2"
    tree[f"{ROOT}/ThermalEquipment/CDUs"]["Members"].append(link(other))
    tree[other] = {"Id": "2", "Pumps": link(f"{other}/Pumps")}
    tree[f"{other}/Pumps"] = {"Members": [link(f"{other}/Pumps/A")]}
    tree[f"{other}/Pumps/A"] = {"Name": "Pump 1", "PumpSpeedPercent": {"SpeedRPM": 2900}}
    speeds = {name: value for name, value in values(source(serve(tree))).items() if "pump" in name}
    assert speeds == {"cdu1_pump1.speed_rpm": 3580, "cdu2_pump1.speed_rpm": 2900}


# ------------------------------------------------------------------------------------------------------------- asking


def test_the_tree_is_walked_once_and_then_only_readings_are_asked_for(serve: Open) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    service.asked.clear()
    for _ in range(2):
        one.read()
    expected = [f"{CDU}/LeakDetection/LeakDetectors/Tray", f"{CDU}/Pumps/A"]
    expected += [f"{CDU}/{loop}CoolantConnectors/1" for loop in ("Primary", "Secondary")]
    assert sorted(service.asked) == sorted([("GET", path) for path in expected] * 2)


def test_a_service_that_can_expand_is_asked_for_a_collection_at_once(serve: Open) -> None:
    tree = chassis()
    tree[ROOT]["ProtocolFeaturesSupported"] = {"ExpandQuery": {"NoLinks": True, "Levels": True, "MaxLevels": 1}}
    service = serve(tree)
    one = source(service)
    expected = values(source(serve(chassis())))
    assert values(one) == expected
    service.asked.clear()
    tree[f"{CHASSIS}/Sensors/InletTemp"]["Reading"] = 25.0
    assert values(one)["inlet.temperature_celsius"] == 25.0
    assert len([path for _, path in service.asked if "/Sensors" in path]) == 1


def test_a_service_that_only_says_that_it_can_expand_is_asked_one_by_one(serve: Open) -> None:
    tree = cdu()
    tree[ROOT]["ProtocolFeaturesSupported"] = {"ExpandQuery": {"NoLinks": True, "Levels": True}}
    service = serve(tree)
    service.before = lambda _method, _path: said(400, "no") if "$expand" in service.asked[-1][1] else None
    assert values(source(service))[PUMP] == 3580


def test_a_session_is_opened_once_and_ended(serve: Open) -> None:
    service = serve(cdu())
    one = source(service)
    one.read()
    one.read()
    assert (service.logins, len(service.sessions)) == (1, 1)
    one.close()
    assert service.sessions == {}


def test_a_session_that_has_ended_is_begun_anew_once(serve: Open) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    service.sessions.clear()
    assert values(one)[PUMP] == 3580
    assert service.logins == 2
    one.close()
    assert service.sessions == {}


def test_a_wrong_password_is_told_and_not_tried_for_ever(serve: Open) -> None:
    service = serve(cdu(), password="another")
    one = source(service)
    assert one.probe().reason == (
        f"user '{USER}' or the password in $REDFISH_PASSWORD is refused (HTTP 401): The user name or password is wrong."
    )
    service.password = PASSWORD
    one = source(service)
    one.sensors()
    service.sessions.clear()
    service.password = "changed since"
    for _ in range(10):
        assert read(one)[PUMP].missing is Missing.UNREADABLE
    assert service.logins <= 5  # refused twice of three, for three in a row lock the user out


@pytest.mark.parametrize("told", [said(404, "no"), (401, {"WWW-Authenticate": 'Basic realm="BMC"'}, b"")])
def test_a_service_without_sessions_is_asked_by_name_and_password_each_time(serve: Open, told: Answer) -> None:
    service = serve(cdu(), password=None)
    service.before = lambda method, _path: told if method == "POST" else None
    one = source(service)
    assert values(one)[PUMP] == 3580
    service.before = lambda _method, _path: (401, {"WWW-Authenticate": "Basic"}, b"")
    for _ in range(5):
        assert "is refused (HTTP 401)" in read(one)[PUMP].detail or "refused 3 times" in read(one)[PUMP].detail
    service.before = lambda method, _path: told if method == "POST" else None
    one.close()
    assert [method for method, _ in service.asked if method == "DELETE"] == []


def test_a_service_without_a_user_is_just_asked(serve: Open) -> None:
    service = serve(cdu(), password=None)
    assert values(source(service, user=None))[PUMP] == 3580
    assert service.logins == 0


# ------------------------------------------------------------------------------------------- readings that are none


@pytest.mark.parametrize(
    "change, missing, detail",
    [
        ({"Status": {"State": "Disabled"}}, Missing.NOT_OFFERED, "Disabled"),
        ({"Status": {"State": "Absent"}}, Missing.ABSENT, "Absent"),
        ({"Status": {"State": "UnavailableOffline", "Health": "Critical"}}, Missing.DEVICE_ERROR, "UnavailableOffline"),
        ({"Status": {"State": "StandbyOffline"}}, Missing.NOT_OFFERED, "StandbyOffline"),
        ({"PumpSpeedPercent": {"SpeedRPM": None}}, Missing.NOT_OFFERED, "null"),
        ({"PumpSpeedPercent": None}, Missing.NOT_OFFERED, "null"),
        ({"PumpSpeedPercent": {"SpeedRPM": "3580 RPM"}}, Missing.NOT_UNDERSTOOD, "'3580 RPM'"),
        ({"PumpSpeedPercent": {"SpeedRPM": True}}, Missing.NOT_UNDERSTOOD, "True"),
        ({"PumpSpeedPercent": {"SpeedRPM": float("nan")}}, Missing.NOT_UNDERSTOOD, "nan"),
        ({"PumpSpeedPercent": [3580]}, Missing.NOT_OFFERED, "null"),
    ],
)
def test_a_pump_that_falls_silent_is_missing_with_the_word_for_it(
    serve: Open, change: dict[str, Any], missing: Missing, detail: str
) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    good = dict(service.tree[f"{CDU}/Pumps/A"])
    service.tree[f"{CDU}/Pumps/A"].update(change)
    reading = read(one)[PUMP]
    assert (reading.value, reading.missing, reading.detail) == (None, missing, detail)
    assert values(one)["coolant.flow_liters_per_minute"] == 82.5
    service.tree[f"{CDU}/Pumps/A"] = good
    assert values(one)[PUMP] == 3580


def test_a_pump_that_stands_is_at_0_whatever_its_health(serve: Open) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    service.tree[f"{CDU}/Pumps/A"].update(
        PumpSpeedPercent={"Reading": 0, "SpeedRPM": 0}, Status={"State": "Enabled", "Health": "Critical"}
    )
    assert values(one)[PUMP] == 0


def test_a_pump_that_is_out_of_order_from_the_start_is_missing_and_not_left_out(serve: Open) -> None:
    tree = cdu()
    tree[f"{CDU}/Pumps/B"]["Status"] = {"State": "UnavailableOffline", "Health": "Critical"}
    reading = read(source(serve(tree)))["pump2.speed_percent"]
    assert (reading.missing, reading.detail) == (Missing.DEVICE_ERROR, "UnavailableOffline")


@pytest.mark.parametrize(
    "told, expected",
    [
        ({"DetectorState": "Critical"}, 2.0),
        ({"DetectorState": "Warning"}, 1.0),
        ({"DetectorState": "Critical", "Status": {"State": "UnavailableOffline"}}, 2.0),
        ({"DetectorState": None, "Status": {"State": "Enabled", "Health": "Critical"}}, 2.0),
        ({"DetectorState": "Unavailable"}, Missing.DEVICE_ERROR),
        ({"DetectorState": "Absent"}, Missing.ABSENT),
        ({"DetectorState": "OK", "Status": {"State": "Disabled"}}, Missing.NOT_OFFERED),
        ({"DetectorState": None, "Status": {"State": "Enabled"}}, Missing.NOT_OFFERED),
        ({"DetectorState": "Wet"}, Missing.NOT_UNDERSTOOD),
    ],
)
def test_what_a_leak_detector_says(serve: Open, told: dict[str, Any], expected: float | Missing) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    service.tree[f"{CDU}/LeakDetection/LeakDetectors/Tray"].update(told)
    reading = read(one)[LEAK]
    assert (reading.missing if reading.value is None else reading.value) == expected


def test_detectors_that_have_no_resources_of_their_own_are_read_from_their_group(serve: Open) -> None:
    tree = cdu()
    tree[f"{CDU}/LeakDetection"] = {
        "LeakDetectorGroups": [
            {
                "GroupName": "Rack",
                "Detectors": [
                    {"DeviceName": "Leak Detector 1", "DetectorState": "OK"},
                    {"DeviceName": "Leak Detector 2", "DetectorState": "Warning"},
                ],
            }
        ]
    }
    leaks = {name: value for name, value in values(source(serve(tree))).items() if "leak" in name}
    assert leaks == {"leak1.detector_state": 0, "leak2.detector_state": 1}


def test_a_resource_that_is_gone_is_absent_and_the_others_are_read(serve: Open) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    del service.tree[f"{CDU}/Pumps/A"]
    reading = read(one)[PUMP]
    assert reading.missing is Missing.ABSENT
    assert "HTTP 404" in reading.detail
    assert values(one)[LEAK] == 0


PUMP_PATH = f"{CDU}/Pumps/A"


@pytest.mark.parametrize(
    "answer, missing, words",
    [
        ((200, {}, b'{"PumpSpeedPercent": {"SpeedR'), Missing.NOT_UNDERSTOOD, "is no JSON"),
        ((200, {}, b"<html>Login</html>"), Missing.NOT_UNDERSTOOD, "<html>Login"),
        ((200, {}, b""), Missing.NOT_UNDERSTOOD, "is no JSON"),
        ((200, {}, b"[1]"), Missing.NOT_UNDERSTOOD, "is no resource"),
        ((500, {}, b"oops"), Missing.DEVICE_ERROR, "HTTP 500"),
        (said(403, "not you"), Missing.UNREADABLE, "may not read"),
        ((302, {"Location": "https://evil.example/redfish/v1"}, b""), Missing.UNREADABLE, "not followed"),
        ((302, {"Location": PUMP_PATH}, b""), Missing.UNREADABLE, "in circles"),
    ],
)
def test_an_answer_that_is_none_is_told(serve: Open, answer: Answer, missing: Missing, words: str) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    service.before = lambda _method, path: answer if path == PUMP_PATH else None
    reading = read(one)[PUMP]
    assert (reading.value, reading.missing) == (None, missing)
    assert words in reading.detail
    service.before = lambda _method, _path: None
    assert values(one)[PUMP] == 3580


def test_a_redirect_on_the_same_service_is_followed(serve: Open) -> None:
    service = serve(cdu())
    service.tree[f"{CDU}/Pumps/There"] = service.tree[PUMP_PATH]
    onward = (301, {"Location": f"{service.url}{CDU}/Pumps/There"}, b"")
    service.before = lambda _method, path: onward if path == PUMP_PATH else None
    assert values(source(service))[PUMP] == 3580


def test_a_torn_answer_at_the_start_costs_no_sensor(serve: Open) -> None:
    service = serve(cdu())
    torn = [b'{"Memb', b"", b'{"a":']

    def half(_method: str, path: str) -> Answer | None:
        return (200, {}, torn.pop()) if path in (PUMP_PATH, f"{CDU}/Pumps") and len(torn) > 1 else None

    service.before = half
    assert PUMP in {sensor.id for sensor in source(service).sensors()}
    assert len(torn) == 1


@pytest.mark.parametrize("after", ["0", "0.01", "Mon, 30 Nov 2020 07:14:48 GMT"])
def test_a_busy_service_is_waited_for_once(serve: Open, after: str) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    busy = [(503, {"Retry-After": after}, b"")]
    service.before = lambda _method, path: busy.pop() if busy and path == PUMP_PATH else None
    assert values(one)[PUMP] == 3580
    assert not busy


def test_a_service_that_asks_for_long_is_left_in_peace(serve: Open) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    service.before = lambda _method, _path: (503, {"Retry-After": "90"}, b"")
    readings = read(one)
    assert {reading.missing for reading in readings.values()} == {Missing.UNREADABLE}
    assert "asks for 90 s" in readings[PUMP].detail
    service.asked.clear()
    assert "come back later" in read(one)[PUMP].detail
    assert service.asked == []


def test_a_service_that_hangs_is_given_up_and_said_so(serve: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    once, released = link_module.Link._once, threading.Event()

    def impatient(link: link_module.Link, method: str, path: str, *more: Any) -> Any:
        """With what hangs alone: what answers here may be held up for long."""
        monkeypatch.setattr(link_module, "ONE_SECONDS", 0.2 if path == PUMP_PATH else PATIENCE_SECONDS)
        return once(link, method, path, *more)

    def hang(_method: str, path: str) -> Answer | None:
        return (200, {}, b"{}") if path == PUMP_PATH and released.wait() else None

    monkeypatch.setattr(link_module.Link, "_once", impatient)
    service.before = hang
    try:
        for _ in range(2):
            here = read(one)
            assert here[PUMP].missing is Missing.TIMEOUT
            assert "gave no answer within 0.2 s" in here[PUMP].detail
            assert here[LEAK].value == 0
    finally:
        released.set()


def test_a_service_that_is_gone_is_asked_once_a_reading(serve: Open) -> None:
    service = serve(cdu())
    one = source(service)
    one.sensors()
    one._link._client._session.close()  # type: ignore[union-attr]
    service._server.shutdown()
    service._server.server_close()
    details = {reading.detail for reading in one.read()}
    assert details == {f"no connection to {service.url}: Connection refused"}


def test_a_reading_that_the_bmc_itself_has_not_renewed_is_stuck(serve: Open) -> None:
    service = serve(chassis())
    one = source(service)
    one.sensors()
    now = [1000.0]
    one._clock = lambda: now[0]
    sensor = service.tree[f"{CHASSIS}/Sensors/InletTemp"]

    def at(second: int) -> Reading:
        now[0] = 1000.0 + second
        return read(one)["inlet.temperature_celsius"]

    one._link.__dict__["_clock"] = one._clock
    for second in (0, 10, 20):
        sensor["ReadingTime"] = f"2027-01-01T00:00:{second:02}Z"
        assert at(second).value == 23.5
    assert [at(second).value for second in (30, 40, 50, 60, 70)] == [23.5] * 5
    stuck = at(80)
    assert (stuck.missing, stuck.detail) == (
        Missing.STUCK,
        "raw 23.5: the BMC read it last at 2027-01-01T00:00:20Z, 60 s ago",
    )
    sensor["ReadingTime"] = "2027-01-01T00:02:00Z"
    assert at(130).value == 23.5


def test_a_time_that_only_tells_of_changes_says_nothing_of_a_constant_fan() -> None:
    times = ReadingTimes()

    def at(second: float, speed: float, time: str) -> float | None:
        (reading,) = times.checked("fan", time, [Reading(sensor_id="fan1.speed_rpm", value=speed)], second)
        return reading.value

    for second, speed in enumerate((5000.0, 5100.0, 5200.0)):
        at(10.0 * second, speed, f"00:00:0{second}")
    assert {at(30.0 + 10.0 * number, 5200.0, "00:00:02") for number in range(100)} == {5200.0}


# -------------------------------------------------------------------------------------------------- what a bench says


def test_the_bench_says_which_part_is_the_pump(serve: Open) -> None:
    service = serve(chassis())
    roles = {"pump0": "redfish:fan 1 TACH", "cpu0": "redfish:CPU1 Temp", "fan7": f"redfish:{CHASSIS}/Sensors/Fan1Share"}
    here = {name: reading.value for name, reading in found(service, sensors=roles).readings.items()}
    assert here["pump0.speed_rpm"] == 5000
    assert here["cpu0.temperature_celsius"] == 61
    assert "fan_1_tach.speed_rpm" not in here


def test_a_part_that_the_bench_names_is_kept_although_it_is_silent(serve: Open) -> None:
    reading = found(serve(cdu()), sensors={"pump7": "redfish:Pump 2"}).readings["pump7.speed_percent"]
    assert (reading.missing, reading.detail) == (Missing.NOT_OFFERED, "Disabled")


@pytest.mark.parametrize("name", ["Pump 9", "Secondary loop flow"])
def test_a_part_that_is_not_there_is_refused_with_those_that_are(serve: Open, name: str) -> None:
    with pytest.raises(SpecError) as raised:
        found(serve(cdu()), sensors={"pump0": f"redfish:{name}"})
    assert f"pump0 to be '{name}'" in str(raised.value)
    assert f"{CDU}/Pumps/A" in str(raised.value)


def test_a_bench_that_names_a_part_and_no_host_is_refused() -> None:
    specs = [one for one in bench_specs(Monitor(sensors={"pump0": "redfish:Pump 1"})) if one.name == "redfish"]
    with pytest.raises(SpecError, match="redfish_host is not set"):
        discover(specs)
    assert not [one for one in bench_specs(Monitor()) if one.name == "redfish"]


@pytest.mark.parametrize(
    "host, words",
    [
        ("http://10.0.0.20", "would send the password for all to read"),
        ("ftp://10.0.0.20", "is no address"),
        ("10.0.0.20:port", "is no address"),
        ("https://operator:secret@10.0.0.20", "has a user or password in it"),
        ("10.0.0.20/redfish/v1/Chassis", "has a path"),
    ],
)
def test_a_host_that_is_none_is_refused(host: str, words: str) -> None:
    availability = make(host=host, user=USER).probe()
    assert not availability.ok
    assert words in availability.reason
    assert "secret" not in availability.reason


def test_without_a_password_nobody_is_asked(serve: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDFISH_PASSWORD")
    service = serve(cdu())
    assert "$REDFISH_PASSWORD is not set" in source(service).probe().reason
    assert service.asked == []


def test_without_the_library_it_is_said_how_to_get_it(serve: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pytest_thermal.sensors.redfish.client", None)
    assert "pip install 'pytest-thermal[redfish]'" in source(serve(cdu())).probe().reason


def test_the_password_is_a_secret_that_only_the_recorder_of_that_service_gets(
    tmp_path: Path, serve: Open, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "config.toml").write_text(
        '[api]\nbase_url = "http://127.0.0.1:1/v1"\n[monitor]\nredfish_host = "10.0.0.20"\n'
        'redfish_user = "operator"\nredfish_ca = "bmc.pem"\n'
    )
    bench = load_bench(tmp_path, environ={"REDFISH_PASSWORD": PASSWORD})
    assert bench.monitor.redfish_ca == str(tmp_path / "bmc.pem")
    assert [secret.get_secret_value() for secret in bench.secrets()] == [PASSWORD]
    assert PASSWORD not in Redactor(bench.secrets()).text(f"the BMC said {PASSWORD}")
    specs = {one.name: one for one in bench_specs(bench.monitor)}
    assert {name: one.secrets for name, one in specs.items() if one.secrets} == {"redfish": ("REDFISH_PASSWORD",)}
    assert PASSWORD not in repr([specs, bench])
    caplog.set_level(0)
    one = source(serve(cdu()))
    one.read()
    one.close()
    assert PASSWORD not in caplog.text
    assert "token-1" not in caplog.text


# ---------------------------------------------------------------------------------------------------------------- TLS


def test_a_certificate_that_nobody_vouches_for_is_refused_unless_the_bench_names_it(
    serve: Open, tmp_path: Path
) -> None:
    issuer = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = issuer.issue_cert("127.0.0.1", "localhost")
    own.configure_cert(context)
    service = serve(cdu(), context=context)
    reason = source(service).probe().reason
    assert reason.startswith(f"the certificate of {service.url} is not trusted (self-signed, or of an issuer unknown")
    assert 'redfish_ca = "bmc.pem"' in reason
    assert f"openssl s_client -connect {service.host}" in reason
    assert service.asked == []
    issuer.cert_pem.write_to_path(tmp_path / "issuer.pem")
    one = source(service, ca=str(tmp_path / "issuer.pem"))
    assert values(one)[PUMP] == 3580
    one.close()
    # As a BMC's own, without its issuer's.
    own.cert_chain_pems[0].write_to_path(tmp_path / "bmc.pem")
    one = source(service, ca=str(tmp_path / "bmc.pem"))
    assert values(one)[PUMP] == 3580
    one.close()
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    assert "is not trusted" in source(service, ca=str(tmp_path / "other.pem")).probe().reason
    assert "there is no file" in source(service, ca=str(tmp_path / "none.pem")).probe().reason


def test_a_certificate_of_another_name_is_told_as_that(serve: Open, tmp_path: Path) -> None:
    issuer = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issuer.issue_cert("bmc-7.lab").configure_cert(context)
    issuer.cert_pem.write_to_path(tmp_path / "issuer.pem")
    service = serve(cdu(), context=context)
    assert "is for another name" in source(service, ca=str(tmp_path / "issuer.pem")).probe().reason


def test_a_source_is_made_in_another_process_from_its_description(serve: Open) -> None:
    service = serve(cdu())
    monitor = Monitor(redfish_host=service.url, redfish_user=USER)
    (spec,) = [one for one in bench_specs(monitor) if one.name == "redfish"]
    json.dumps(dict(replace(spec).options))
    one = open_source(spec)
    assert {reading.value for reading in one.read() if reading.sensor_id == PUMP} == {3580}
    one.close()
    assert service.sessions == {}
    assert os.environ["REDFISH_PASSWORD"] == PASSWORD


@pytest.mark.parametrize("hangs", [False, True])
def test_a_recording_ends_its_session_also_in_the_middle_of_a_reading(serve: Open, tmp_path: Path, hangs: bool) -> None:
    service = serve(cdu())
    monitor = Monitor(redfish_host=service.url, redfish_user=USER)
    (spec,) = [one for one in bench_specs(monitor) if one.name == "redfish"]
    run = create_run(tmp_path / "runs", facts={"bench": {"name": "test"}})
    orders = [SourceOrder(source=spec, period_seconds=0.2)]
    held: list[str] = []
    released = threading.Event()

    def hold(_method: str, path: str) -> Answer | None:
        if path == PUMP_PATH:
            held.append(path)
            released.wait()
        return None

    with start_recorder(run, sources=orders, period_seconds=0.2, startup_seconds=PATIENCE_SECONDS) as recorder:
        recorder.wait_ready(PATIENCE_SECONDS)
        until(lambda: len(read_run(run).series.get(PUMP, ())) >= 2)
        assert len(service.sessions) == 1
        if hangs:
            service.before = hold
            until(lambda: bool(held))
    until(lambda: not service.sessions)
    released.set()
    assert service.logins == 1
    assert not [path for path in run.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
