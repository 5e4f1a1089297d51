"""What is special to BMCs: sensors are known by names that somebody chose, and any of them may fall silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.bench import Monitor, Redactor, load_bench
from pytest_thermal.model import Missing, Unit
from pytest_thermal.model.kinds import Kind, is_leak_detector, is_pump, kind_of
from pytest_thermal.sensors import SpecError, TellsAbsent, discover
from pytest_thermal.sensors.bmc_names import called, measures
from pytest_thermal.sensors.registry import Found
from pytest_thermal.sensors.specs import bench_specs
from tests.sensors.canned import OUTPUTS, Canned, own_tool, read, values

ELIST = (OUTPUTS / "ipmitool_elist.txt").read_text("utf-8")
LIST = (OUTPUTS / "ipmitool_list.txt").read_text("utf-8")


def changed(canned: Canned, old: str, new: str) -> None:
    assert isinstance(canned.out, str)
    assert old in canned.out
    canned.out = canned.out.replace(old, new)


def without(text: str, part: str) -> str:
    kept = [line for line in text.splitlines(keepends=True) if part not in line]
    assert len(kept) == len(text.splitlines()) - 1
    return "".join(kept)


def test_of_two_sensors_of_one_name_each_keeps_its_own_figure() -> None:
    canned = Canned(ELIST)
    source = own_tool(canned, "ipmi")
    assert values(source)["fan_1_41h_29_1.speed_rpm"] == 5040
    lines = ELIST.splitlines(keepends=True)
    canned.out = "".join(reversed(lines))
    assert values(source)["fan_1_41h_29_1.speed_rpm"] == 5040
    canned.out = without(ELIST, "| 41h |")
    readings = read(source)
    assert readings["fan_1_41h_29_1.speed_rpm"].missing is Missing.ABSENT
    assert readings["fan_1_42h_29_2.speed_rpm"].value == 5280


def test_of_two_sensors_of_one_name_without_numbers_none_takes_the_others_figure() -> None:
    canned = Canned(
        LIST.replace("FAN2 F Speed     | 0 RPM             | cr", "FAN1 F Speed     | 4800 RPM          | ok")
    )
    source = own_tool(canned, "ipmi")
    fans = {name: value for name, value in values(source).items() if name.startswith("fan1_f")}
    assert sorted(fans.values()) == [4800, 5760]
    assert isinstance(canned.out, str)
    canned.out = without(canned.out, "5760 RPM")
    readings = read(source)
    assert {readings[name].missing for name in fans} == {Missing.ABSENT}
    assert readings["pump1.speed_rpm"].value == 2760


@pytest.mark.parametrize(
    "row, missing, words",
    [
        ("| ns  | 30.1 | Disabled", Missing.NOT_OFFERED, "Disabled"),
        ("| ns  | 30.1 | No Reading", Missing.NOT_OFFERED, "No Reading"),
        ("| ns  | 30.1 | 0 RPM", Missing.NOT_OFFERED, "ns"),
        ("| ok  | 30.1 | 31�0 RPM", Missing.NOT_UNDERSTOOD, "31�0 RPM"),
        ("| ok  | 30.1 | 3180,5 RPM", Missing.NOT_UNDERSTOOD, "3180,5"),
        ("| ok  | 30.1 | 31 degrees C", Missing.ABSENT, "not in the tool's answer"),
        ("| ok  | 30.1 |", Missing.NOT_OFFERED, ""),
    ],
)
def test_a_pump_that_falls_silent_is_missing_and_never_0(row: str, missing: Missing, words: str) -> None:
    canned = Canned(ELIST)
    source = own_tool(canned, "ipmi")
    assert values(source)["liq_pump_a.speed_rpm"] == 3180
    changed(canned, "| ok  | 30.1 | 3180 RPM", row)
    reading = read(source)["liq_pump_a.speed_rpm"]
    assert (reading.value, reading.missing) == (None, missing)
    assert words in reading.detail
    changed(canned, row, "| ok  | 30.1 | 3060 RPM")
    assert values(source)["liq_pump_a.speed_rpm"] == 3060


def test_a_pump_that_stands_is_at_0_also_where_its_threshold_says_so() -> None:
    canned = Canned(ELIST)
    source = own_tool(canned, "ipmi")
    source.sensors()
    changed(canned, "| ok  | 30.1 | 3180 RPM", "| lnr | 30.1 | 0 RPM")
    assert read(source)["liq_pump_a.speed_rpm"].value == 0


def test_a_controller_that_answers_nothing_is_missing_in_words() -> None:
    canned = Canned(ELIST)
    source = own_tool(canned, "ipmi")
    source.sensors()
    canned.out, canned.err = "", "Get Device ID command failed: 0xc3 Timeout\n"
    readings = read(source)
    assert {reading.value for reading in readings.values()} == {None}
    assert all("Get Device ID command failed" in reading.detail for reading in readings.values())
    canned.err = ""
    assert {reading.detail for reading in source.read()} == {"printed nothing"}


def test_one_call_a_reading() -> None:
    canned = Canned(ELIST)
    source = own_tool(canned, "ipmi")
    source.sensors()
    canned.calls.clear()
    for _ in range(3):
        source.read()
    assert canned.calls == [["sdr", "elist", "full"]] * 3
    assert canned.followed == []


def test_a_name_that_is_no_utf8_is_still_one_sensor() -> None:
    canned = Canned(ELIST.encode() + b"f\xd4\x4eF             | 77h | ok  | 29.9 | 4440 RPM\n")
    source = own_tool(canned, "ipmi")
    assert values(source)["f_nf.speed_rpm"] == 4440
    assert values(source)["fan_1_42h_29_2.speed_rpm"] == 5280


def test_what_is_left_out_is_listed_with_its_name() -> None:
    source = own_tool(Canned(ELIST), "ipmi")
    source.sensors()
    assert isinstance(source, TellsAbsent)
    told = {one.sensor.id: (one.sensor.label, one.reading.detail) for one in source.absent()}
    name, why = told["bmc_cpu1.temperature_celsius"]
    assert name == "CPU1 Temp"
    assert "left out" in why


@pytest.mark.parametrize(
    "name, device",
    [
        ("Pump1 RPM", "pump1"),
        ("PUMP 1", "pump1"),
        ("CDU Pump 02 Speed", "cdu_pump02"),
        ("LIQ_PUMP_A", "liq_pump_a"),
        ("LIQPUMP1", "liq_pump1"),
        ("PumpB", "pump_b"),
        ("AIO_PUMP", "aio_pump"),
        ("Coolant Inlet", "coolant_supply"),
        ("Inlet Coolant", "coolant_supply"),
        ("Inlet Water Temp", "coolant_supply"),
        ("Liquid_In", "coolant_supply"),
        ("CDU Return Temp", "coolant_return"),
        ("CoolantOut", "coolant_return"),
        ("Coolant 2 In", "coolant_supply2"),
        ("Facility Water Supply", "facility_water_supply"),
        ("Inlet Temp", "inlet"),
        ("Ambient Temp", "ambient"),
        ("FAN_1", "fan_1"),
        ("PSU1 FAN_A", "psu1_fan_a"),
        ("CPU1 Temp", "bmc_cpu1"),
        ("GPU_FAN1", "bmc_gpu_fan1"),
    ],
)
def test_a_name_that_says_what_it_is(name: str, device: str) -> None:
    assert called(name) == device
    assert kind_of(device) is Kind.OTHER


@pytest.mark.parametrize("name", ["Pump1 RPM", "LIQ_PUMP_A", "PUMP 1", "AIO_PUMP", "CDU Pump 2"])
def test_a_pump_is_one_to_every_check(name: str) -> None:
    out = f"{name:<17}| 05h | ok  |  7.1 | 3600 RPM\n"
    (sensor,) = own_tool(Canned(out), "ipmi").sensors()
    assert is_pump(sensor)
    assert sensor.unit is Unit.RPM


@pytest.mark.parametrize(
    "name, unit, kind",
    [
        ("CPU1 Core Rem", "degrees C", "margin"),
        ("CPU 1 DTS", "degrees C", "margin"),
        ("PSU1 FAN_A DUTY", "percent", "share"),
        ("CPU Utilization", "percent", ""),
        ("P12V", "Volts", ""),
        ("PSU1 Iout", "Amps", ""),
        ("Coolant Flow", "liters", ""),
        ("Pump 2", "", "speed"),
        ("Pump Status", "", ""),
        ("CPU1 OverTemp", "", ""),
        ("Liquid Leak", "", ""),
    ],
)
def test_what_is_measured(name: str, unit: str, kind: str) -> None:
    assert measures(name, unit) == kind


def test_numbers_of_cards_leave_no_sensor_of_the_bmc_out() -> None:
    (spec,) = [one for one in bench_specs(Monitor(gpu_indices=(0, 1))) if one.name == "ipmi"]
    assert "0,1" not in spec.options.values()
    assert spec.least_period_seconds == 10


# -------------------------------------------------------------------------------------------------------- roles


class Bmc:
    """A machine whose ipmitool prints what a file holds."""

    def __init__(self, folder: Path) -> None:
        self.printed = folder / "printed"
        self.printed.write_text(ELIST)
        tool = folder / "ipmitool"
        self.seen = folder / "seen"
        tool.write_text(f'#!/bin/sh\necho "$@" "[$IPMI_PASSWORD]" >>{self.seen}\ncat {self.printed}\n')
        tool.chmod(0o755)

    def found(self, **sensors: str) -> Found:
        return found(Monitor(sensors={device: f"ipmi:{name}" for device, name in sensors.items()}))

    def values(self, found: Found) -> dict[str, float | None]:
        return {name: reading.value for name, reading in found.readings.items()}


def found(monitor: Monitor) -> Found:
    (spec,) = [one for one in bench_specs(monitor) if one.name == "ipmi"]
    return discover([spec]).found[0]


@pytest.fixture
def bmc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bmc:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Bmc(tmp_path)


def test_the_bench_says_which_sensor_is_the_pump(bmc: Bmc) -> None:
    found = bmc.found(pump0="cpu_opt", pump1="42h", cpu0="CPU1 Temp")
    here = bmc.values(found)
    assert here["pump0.speed_rpm"] == 2940
    assert here["pump1.speed_rpm"] == 5280
    assert here["cpu0.temperature_celsius"] == 61
    assert not {"cpu_opt.speed_rpm", "fan_1_42h_29_2.speed_rpm"} & set(here)
    # The other of that name is still there, and still told by its number.
    assert here["fan_1_41h_29_1.speed_rpm"] == 5040
    assert {sensor.id for sensor in found.sensors if is_pump(sensor)} >= {"pump0.speed_rpm", "pump1.speed_rpm"}


def test_a_pump_of_the_bench_that_is_silent_from_the_start_is_missing_and_not_left_out(bmc: Bmc) -> None:
    found = bmc.found(pump0="FAN 3", pump1="Pump 2")
    for name, word in (("pump0.speed_rpm", "No Reading"), ("pump1.speed_rpm", "Disabled")):
        assert name in {sensor.id for sensor in found.sensors}
        assert (found.readings[name].missing, found.readings[name].detail) == (Missing.NOT_OFFERED, word)


def test_where_another_sensor_has_the_roles_name_it_gives_way(bmc: Bmc) -> None:
    bmc.printed.write_text("Pump 1 | 4Ah | ok | 30.1 | 3180 RPM\nCPU_OPT | 4Ch | ok | 30.3 | 2940 RPM\n")
    assert bmc.values(bmc.found(pump1="CPU_OPT")) == {"pump1.speed_rpm": 2940, "pump1_4ah_30_1.speed_rpm": 3180}


@pytest.mark.parametrize(
    "row, expected",
    [
        # Nothing asserted, or a state of the maker's own: ipmitool prints nothing for both.
        ("ok  | 30.9 |", Missing.NOT_UNDERSTOOD),
        ("ok  | 30.9 | 0x01", Missing.NOT_UNDERSTOOD),
        ("ok  | 30.9 | State Deasserted, Monitor", Missing.NOT_UNDERSTOOD),
        ("ok  | 30.9 | State Asserted, Monitor", 2.0),
        ("ok  | 30.9 | Transition to Non-Critical from OK, Transition to Critical from less severe", 2.0),
        ("ok  | 30.9 | Transition to OK, Transition to Non-Critical from OK", 1.0),
        ("ok  | 30.9 | Limit Not Exceeded, Limit Exceeded", 2.0),
        ("ok  | 30.9 | State Deasserted", 0.0),
        ("ok  | 30.9 | Transition to OK", 0.0),
        ("ok  | 30.9 | Limit Not Exceeded", 0.0),
        ("ok  | 30.9 | Transition to Non-critical from OK", 1.0),
        ("ok  | 30.9 | State Asserted", 2.0),
        ("ok  | 30.9 | Limit Exceeded", 2.0),
        ("ok  | 30.9 | Transition to Critical from less severe", 2.0),
        ("ok  | 30.9 | Transition to Non-recoverable from less severe", 2.0),
        ("ns  | 30.9 | Disabled", Missing.NOT_OFFERED),
        ("ns  | 30.9 |", Missing.NOT_OFFERED),
        ("ok  | 30.9 | Device Present", Missing.NOT_UNDERSTOOD),
    ],
)
def test_the_bench_says_which_discrete_sensor_tells_of_leaks(bmc: Bmc, row: str, expected: float | Missing) -> None:
    bmc.printed.write_text(f"{ELIST}Liquid Leak      | 7Ch | {row}\n")
    found = bmc.found(leak0="Liquid Leak")
    (sensor,) = [one for one in found.sensors if one.device == "leak0"]
    assert is_leak_detector(sensor)
    reading = found.readings["leak0.detector_state"]
    assert (reading.missing if reading.value is None else reading.value) == expected
    assert {line.partition(" [")[0] for line in bmc.seen.read_text().splitlines()} == {"sdr elist all"}


@pytest.mark.parametrize("name", ["Leak OK", "Coolant_Good", "Leak Sensor Present"])
@pytest.mark.parametrize("word", ["State Asserted", "State Deasserted"])
def test_a_detector_whose_name_is_good_news_says_neither_dry_nor_leak(bmc: Bmc, name: str, word: str) -> None:
    bmc.printed.write_text(f"{ELIST}{name} | 7Ch | ok | 30.9 | {word}\n")
    reading = bmc.found(leak0=name).readings["leak0.detector_state"]
    assert reading.missing is Missing.NOT_UNDERSTOOD
    assert word in reading.detail


@pytest.mark.parametrize("name", ["FAN 7", "FAN 1", "PSU1 Status"])
def test_a_sensor_that_is_not_there_or_twice_is_refused(bmc: Bmc, name: str) -> None:
    with pytest.raises(SpecError) as raised:
        bmc.found(pump0=name)
    said = str(raised.value)
    assert f"pump0 to be {name!r}" in said
    assert "FAN 1 41h 29.1" in said
    assert "CPU1 Temp" in said


def test_a_bmc_that_cannot_be_asked_is_refused_where_the_bench_counts_on_it(bmc: Bmc) -> None:
    bmc.printed.unlink()
    with pytest.raises(SpecError, match="printed"):
        bmc.found(pump0="CPU_OPT")
    assert not bmc.found().availability.ok


# -------------------------------------------------------------------------------------------------- over the network


NETWORK = Monitor(ipmi_host="10.0.0.20:6623", ipmi_user="operator", ipmi_cipher_suite=3)


def test_a_bmc_on_the_network_gets_the_password_by_the_environment_alone(
    bmc: Bmc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPMI_PASSWORD", "correct-horse")
    assert found(NETWORK).sensors
    calls = set(bmc.seen.read_text().splitlines())
    assert calls == {
        "-I lanplus -H 10.0.0.20 -p 6623 -U operator -C 3 -E sdr elist full [correct-horse]",
    }
    bmc.seen.unlink()
    assert found(Monitor()).sensors
    assert set(bmc.seen.read_text().splitlines()) == {"sdr elist full []"}


def test_without_a_password_the_bmc_on_the_network_is_not_asked(bmc: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IPMI_PASSWORD", raising=False)
    availability = found(NETWORK).availability
    assert not availability.ok
    assert "$IPMI_PASSWORD is not set" in availability.reason
    assert not bmc.seen.exists()


def test_the_password_is_a_secret_that_only_the_recorder_of_that_bmc_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text(
        '[api]\nbase_url = "http://127.0.0.1:1/v1"\n[monitor]\nipmi_host = "10.0.0.20"\n'
    )
    bench = load_bench(tmp_path, environ={"IPMI_PASSWORD": "correct-horse"})
    assert [secret.get_secret_value() for secret in bench.secrets()] == ["correct-horse"]
    assert "correct-horse" not in Redactor(bench.secrets()).text("ipmitool said correct-horse")
    specs = {one.name: one for one in bench_specs(bench.monitor)}
    assert {name: one.secrets for name, one in specs.items() if one.secrets} == {"ipmi": ("IPMI_PASSWORD",)}
    assert "correct-horse" not in repr([specs, bench])
